r"""Adam: m ← β₁ m + (1-β₁) g, v ← β₂ v + (1-β₂) g², θ ← θ - η m̂ / (√v̂ + ε).

Kingma and Ba, ICLR 2015. A step is about η in every coordinate whatever the gradient's size, far more than SGD's at the
same η, so the default learning rate is a tenth of the reference rule.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from polytta.errors import ConfigError
from polytta.optim.base import Optimizer, Rows, Slots


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam.

    Attributes:
        betas: decay rates (β₁, β₂).
        eps: ε.
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    name: ClassVar[str] = "adam"
    slots: ClassVar[tuple[str, ...]] = ("exp_avg", "exp_avg_sq")
    relative_lr: ClassVar[float] = 0.1
    has_own_scale: ClassVar[bool] = True

    def validate(self) -> None:
        """Decay rates must be in [0, 1), ε positive."""
        super().validate()
        if not all(0 <= beta < 1 for beta in self.betas) or self.eps <= 0:
            raise ConfigError(
                f"optimizer: got {type(self).__name__}(betas={self.betas}, eps={self.eps}); "
                "allowed are betas in [0, 1) and eps > 0."
            )

    def step(self, rows: Rows) -> tuple[Tensor, Slots]:
        """One step of every row."""
        beta1, beta2 = self.betas
        first = beta1 * rows.state["exp_avg"] + (1 - beta1) * rows.direction
        second = beta2 * rows.state["exp_avg_sq"] + (1 - beta2) * rows.direction.square()
        steps = rows.count.to(rows.theta.dtype)
        scale = (1 - beta2**steps).sqrt()
        moved = rows.theta - rows.lr / (1 - beta1**steps) * first / (second.sqrt() / scale + self.eps)
        return moved, {"exp_avg": first, "exp_avg_sq": second}
