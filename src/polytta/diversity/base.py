"""The role of a diversifier: turn the particles' losses into the directions they descend.

A diversifier sees an ``Objective``, the population at one point with what it is to descend, and never learns which base
method made it. Particles of different populations must not meet: ``objective.by_population`` keeps them apart.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from torch import Tensor

from polytta.roles import Objective


class Diversifier(ABC):
    """Base of all diversifiers. Subclasses are frozen dataclasses with a ``name``."""

    name: ClassVar[str]
    needs_input_gradient: ClassVar[bool] = False
    """Whether passes must be differentiable with respect to their ``images``."""

    def differentiates_twice(self, x: Tensor) -> bool:
        """Whether passes over ``x`` need a second derivative, which fused attention does not have.

        Asked of diversifiers that need input gradients.
        """
        return False

    @property
    def compares_predictions_on(self) -> Literal["nothing", "selected", "all"]:
        """The samples on which a particle's predictions are held against the others', which must then have them."""
        return "nothing"

    def validate(self) -> None:
        """Raises ConfigError when a field has a value that is not allowed."""

    def kernel_matrix(self, theta: Tensor) -> Tensor | None:
        """(K, K) similarity of particles, where the diversifier has one."""
        return None

    @abstractmethod
    def direction(self, objective: Objective, losses: Tensor) -> Tensor:
        """(G·K, P) direction to descend, scaled so that one particle alone gets its plain gradient."""
