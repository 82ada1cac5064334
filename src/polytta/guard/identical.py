"""Notices a population whose particles are all the same, and so worth one."""

import warnings
from collections.abc import Sequence
from math import inf

from torch import Tensor

from polytta.errors import PolyttaWarning

AFTER = 5
"""Steps that every particle has taken before anybody looks."""
# Looking waits for the GPU, so there it is done now and then.
_PAUSE_ON_GPU = 64


class IdenticalParticles:
    """Warns once per stream.

    Attributes:
        due: the step after which to look next.
    """

    def __init__(self, particles: int) -> None:
        self.due: float = AFTER if particles > 1 else inf

    def look(self, step: int, theta: Tensor, source: Tensor, taken: Sequence[int]) -> None:
        """Looks at the particles (G, K, P) after a step; ``taken`` is the number of steps each of them has taken."""
        self.due = step + (_PAUSE_ON_GPU if theta.is_cuda else 1)
        if min(taken, default=0) < AFTER:
            return
        drift = float((theta - source).norm(dim=2).max())
        if drift == 0:  # all of them were just reset
            return
        self.due = inf
        if float((theta - theta[:, :1]).norm(dim=2).max()) <= 1e-5 * drift:
            warnings.warn(
                f"all {theta.shape[1]} particles are still the same after {step} steps, so they are worth one; "
                "let lr_spread, the optimizers, or the random numbers differ.",
                PolyttaWarning,
                stacklevel=7,
            )
