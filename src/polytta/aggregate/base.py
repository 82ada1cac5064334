"""The role of an aggregate: one prediction from K, and who of them should start over."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor


@dataclass(frozen=True)
class Restart:
    """Particles that start over.

    Attributes:
        rows: (R,) booleans.
        donors: (R,) the row whose parameters each of them would take.
    """

    rows: Tensor
    donors: Tensor


class Aggregate(ABC):
    """Base of all aggregates. Subclasses are frozen dataclasses with a ``name``."""

    name: ClassVar[str]
    by_fineness: ClassVar[bool] = False
    """Whether it asks how fine the detail of each image is."""

    def validate(self) -> None:
        """Raises ConfigError when a field has a value that is not allowed."""

    def facts(self) -> dict[str, float | str]:
        """What pins its answers besides its fields, for records."""
        return {}

    @abstractmethod
    def combine(self, logits: Tensor, evidence: Mapping[str, Tensor], fineness: Tensor) -> Tensor:
        """(..., B, C) log-probabilities from (..., K, B, C) logits.

        ``evidence`` is what the answers before this batch say about the particles (``polytta.aggregate.evidence``),
        empty before the first; ``fineness`` (..., B) is how fine the detail of each image is, 0 unless ``by_fineness``.
        """

    def answer(
        self, logits: Tensor, evidence: Mapping[str, Tensor], fineness: Tensor
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """What ``combine`` says, and the tensors of the evidence that answering changes; none unless an aggregate is
        to remember its answers.
        """
        return self.combine(logits, evidence, fineness), {}

    def weights(self, evidence: Mapping[str, Tensor], fineness: Tensor, particles: int) -> Tensor:
        """(G, B, K) what each of K particles counts in the answers on images of that (G, B) fineness; sums are 1."""
        return fineness.new_full((*fineness.shape, particles), 1 / particles)

    def slowing(self, evidence: Mapping[str, Tensor], populations: int) -> Tensor | None:
        """(R,) factors on the particles' paces at the next batch; None for none. Learning rates are left as given."""
        return None

    def after_step(
        self, evidence: Mapping[str, Tensor], images: int, step: Tensor, populations: int
    ) -> Mapping[str, Tensor]:
        """Tensors of the evidence to be replaced after a batch of so many images, the step of that number."""
        return {}

    def restarts(self, evidence: Mapping[str, Tensor], populations: int) -> Restart | None:
        """The particles of all populations that should start over, given the evidence after a batch; None for none."""
        return None
