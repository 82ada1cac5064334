"""The role of an optimizer: move rows of a (K, P) population along a direction, each row with its own learning rate.

An optimizer is a frozen dataclass of hyper-parameters and one pure function over rows. Particles that share the
hyper-parameters are moved together; a particle that takes no step keeps its parameters *and* its optimizer state.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from torch import Tensor

from polytta.errors import ConfigError

Slots = dict[str, Tensor]


@dataclass(frozen=True)
class Rows:
    """Particles about to be moved by the same optimizer.

    Attributes:
        theta: (R, P) parameters.
        direction: (R, P) gradients.
        state: the optimizer's buffers, (R, P) each.
        lr: (R, 1).
        count: (R, 1), number of steps each row has taken, this one included.
        source: (P,), the source model's parameters.
    """

    theta: Tensor
    direction: Tensor
    state: Mapping[str, Tensor]
    lr: Tensor
    count: Tensor
    source: Tensor


@dataclass(frozen=True)
class Optimizer(ABC):
    """Base of all optimizers.

    Attributes:
        lr: learning rate; None means the reference rule for the model and batch size.
    """

    lr: float | None = None

    name: ClassVar[str]
    slots: ClassVar[tuple[str, ...]]
    """Names of its (K, P) buffers."""
    relative_lr: ClassVar[float] = 1.0
    """Factor on the reference rule, which was found for SGD."""
    has_own_scale: ClassVar[bool] = False
    """Whether its steps do not grow with the gradient."""

    def validate(self) -> None:
        """Raises ConfigError when a field has a value that is not allowed."""
        if self.lr is not None and not 0 <= self.lr < inf:
            raise ConfigError(f"optimizer: got {type(self).__name__}(lr={self.lr}); allowed is a finite lr >= 0.")

    @abstractmethod
    def step(self, rows: Rows) -> tuple[Tensor, Slots]:
        """New parameters and new buffers of every row."""
