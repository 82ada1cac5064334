"""What the norm layers of the graph engine share during one pass, besides how rows belong to particles."""

from dataclasses import dataclass, field
from weakref import ref

from torch import Tensor

from polytta.particles.fold import Fold


@dataclass(frozen=True)
class GraphFold(Fold):
    """One pass; the containers fill up in its course and go with it.

    Attributes:
        marks: by number of images and who of them counts, what kernels need to know of that.
        deferred: outputs that may not have been computed yet.
    """

    marks: dict[tuple[int, int], tuple[Tensor, Tensor]] = field(default_factory=dict)
    deferred: list[ref[Tensor]] = field(default_factory=list)
