r"""AdamW: θ ← θ - η w (θ - θ*), then Adam.

Loshchilov and Hutter, ICLR 2019. The original decays towards 0, which would pull norm scales away from the source
model; here θ* is the source's parameters unless ``decay_to="zero"``.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from torch import Tensor

from polytta.errors import ConfigError
from polytta.optim.adam import Adam
from polytta.optim.base import Rows, Slots


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled weight decay.

    Attributes:
        weight_decay: w.
        decay_to: "source" or "zero".
    """

    weight_decay: float = 0.01
    decay_to: Literal["source", "zero"] = "source"

    name: ClassVar[str] = "adamw"

    def validate(self) -> None:
        """Decay must not be negative and lead to a known place."""
        super().validate()
        if self.weight_decay < 0 or self.decay_to not in ("source", "zero"):
            raise ConfigError(
                f"optimizer: got AdamW(weight_decay={self.weight_decay}, decay_to={self.decay_to!r}); "
                "allowed are weight_decay >= 0 and decay_to 'source' or 'zero'."
            )

    def step(self, rows: Rows) -> tuple[Tensor, Slots]:
        """One step of every row."""
        offset = rows.theta - rows.source if self.decay_to == "source" else rows.theta
        return super().step(replace(rows, theta=rows.theta - rows.lr * self.weight_decay * offset))
