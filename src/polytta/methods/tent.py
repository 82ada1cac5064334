r"""Tent: minimise the mean prediction entropy of every batch.

    ℓ(X; θ) = 1/B · Σ_b H(p_θ(x_b)),   θ ← θ - η ∇ℓ

Wang et al., "Tent: Fully Test-Time Adaptation by Entropy Minimization", ICLR 2021. No filter, one step per batch.
"""

from dataclasses import dataclass
from typing import ClassVar

from polytta.methods.base import Method
from polytta.roles import Context, Pass, Selection, State


@dataclass(frozen=True)
class Tent(Method):
    """Entropy minimisation on all samples."""

    name: ClassVar[str] = "tent"
    filters: ClassVar[tuple[str, ...]] = ("all",)

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        """Every sample, at weight 1."""
        return Selection.everything(forward_pass), state
