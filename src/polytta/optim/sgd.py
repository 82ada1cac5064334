r"""SGD with momentum: v ← μ v + g, θ ← θ - η v (torch.optim.SGD's form)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from polytta.errors import ConfigError
from polytta.optim.base import Optimizer, Rows, Slots


@dataclass(frozen=True)
class SGD(Optimizer):
    """Stochastic gradient descent.

    Attributes:
        momentum: μ; 0.9 in every public implementation of the base methods.
    """

    momentum: float = 0.9

    name: ClassVar[str] = "sgd"
    slots: ClassVar[tuple[str, ...]] = ("momentum",)

    def validate(self) -> None:
        """Momentum must be in [0, 1)."""
        super().validate()
        if not 0 <= self.momentum < 1:
            raise ConfigError(f"optimizer: got SGD(momentum={self.momentum}); allowed is 0 <= momentum < 1.")

    def step(self, rows: Rows) -> tuple[Tensor, Slots]:
        """One step of every row."""
        momentum = self.momentum * rows.state["momentum"] + rows.direction
        return rows.theta - rows.lr * momentum, {"momentum": momentum}
