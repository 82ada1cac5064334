r"""SGD with momentum: v ← μ v + g, θ ← θ - η v; Nesterov's: θ ← θ - η (g + μ v) (torch.optim.SGD's forms)."""

from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from polytta.errors import ConfigError
from polytta.optim.base import Optimizer, Rows, Slots
from polytta.roles.registry import LATER


@dataclass(frozen=True)
class SGD(Optimizer):
    """Stochastic gradient descent.

    Attributes:
        momentum: μ; 0.9 in every public implementation of the base methods.
        nesterov: look ahead along the momentum, as the public code of ROID and RDumb does.
    """

    momentum: float = 0.9
    nesterov: bool = field(default=False, metadata=LATER)

    name: ClassVar[str] = "sgd"
    slots: ClassVar[tuple[str, ...]] = ("momentum",)

    def validate(self) -> None:
        """Momentum must be in [0, 1), and there where it is looked along."""
        super().validate()
        if not 0 <= self.momentum < 1:
            raise ConfigError(f"optimizer: got SGD(momentum={self.momentum}); allowed is 0 <= momentum < 1.")
        if self.nesterov and self.momentum == 0:
            raise ConfigError("optimizer: got SGD(momentum=0, nesterov=True); allowed with nesterov is momentum > 0.")

    def step(self, rows: Rows) -> tuple[Tensor, Slots]:
        """One step of every row."""
        momentum = self.momentum * rows.state["momentum"] + rows.direction
        along = rows.direction + self.momentum * momentum if self.nesterov else momentum
        return rows.theta - rows.lr * along, {"momentum": momentum}
