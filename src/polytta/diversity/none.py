r"""No interaction: every particle descends its own loss, dᵢ = ∇ℓ(X; θᵢ) (the paper's Naive ensemble)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from polytta.diversity.base import Diversifier
from polytta.roles import Objective


@dataclass(frozen=True)
class Independent(Diversifier):
    """Particles that ignore each other."""

    name: ClassVar[str] = "none"

    def direction(self, objective: Objective, losses: Tensor) -> Tensor:
        """The plain gradient; one backward pass serves all particles, since no loss depends on another's row."""
        return objective.gradient(losses.sum())
