"""Notices a population whose particles are all the same, and so worth one."""

import warnings

from torch import Tensor

from polytta.errors import PolyttaWarning

AFTER = 5
"""Steps that every particle has taken before anybody looks."""
# Looking waits for the GPU, so there it is done now and then.
_EVERY_ON_GPU = 64


class IdenticalParticles:
    """Warns once per stream."""

    def __init__(self) -> None:
        self._settled = False

    def is_due(self, step: int, theta: Tensor) -> bool:
        """Whether to look after this step."""
        if self._settled or theta.shape[1] < 2 or step < AFTER:
            return False
        return not theta.is_cuda or step == AFTER or step % _EVERY_ON_GPU == 0

    def look(self, theta: Tensor, source: Tensor, steps: int) -> None:
        """Looks at the particles (G, K, P), each of which has moved often enough to differ."""
        drift = float((theta - source).norm(dim=2).max())
        if drift == 0:  # all of them were just reset
            return
        self._settled = True
        if float((theta - theta[:, :1]).norm(dim=2).max()) <= 1e-5 * drift:
            warnings.warn(
                f"all {theta.shape[1]} particles are still the same after {steps} steps, so they are worth one; "
                "let lr_spread, the optimizers, or the random numbers differ.",
                PolyttaWarning,
                stacklevel=7,
            )
