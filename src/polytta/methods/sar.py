r"""SAR: sharpness-aware entropy minimisation on reliable samples, with recovery from collapse.

    S₁ = {b : H_b(θ) < E₀},  g = ∇ mean_{S₁} H(θ),  θ' = θ + ρ g / ‖g‖
    S₂ = {b ∈ S₁ : H_b(θ') < E₀},  θ ← θ - η ∇ mean_{S₂} H(θ')
    e ← 0.9 e + 0.1 · mean_{S₂} H(θ');  if e < reset_below: θ ← θ⁰

Niu et al., "Towards Stable Test-Time Adaptation in Dynamic Wild World", ICLR 2023. Two things in the public code are
faults and are fixed here: momentum keeps moving the weights when nothing was selected, and a reset clears neither the
moving average nor the momentum. ``quirks="reference"`` brings them back, for comparison with published runs.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from polytta.errors import ConfigError
from polytta.methods.base import (
    Beginning,
    Context,
    Method,
    Pass,
    Proposal,
    Selection,
    State,
    any_selected,
    entropy,
    masked_mean,
)


@dataclass(frozen=True)
class SAR(Method):
    """Sharpness-aware and reliable entropy minimisation.

    Attributes:
        margin: entropy threshold E₀ as a fraction of ln C.
        rho: radius of the sharpness-aware perturbation.
        reset_below: a particle whose moving average of entropy falls below this (in nats) returns to source.
        second_pass: samples the perturbed pass sees: "all" (SAR's code) or "selected" (the copy in DeYO's code). They
            differ only where BatchNorm takes statistics of the batch.
        quirks: "fixed", or "reference" for the public code's behaviour.
    """

    margin: float = 0.4
    rho: float = 0.05
    reset_below: float = 0.2
    second_pass: Literal["all", "selected"] = "all"
    quirks: Literal["fixed", "reference"] = "fixed"

    name: ClassVar[str] = "sar"
    filters: ClassVar[tuple[str, ...]] = ("entropy", "perturbed entropy")
    single_image_lr_factor: ClassVar[float] = 2.0

    def validate(self) -> None:
        """Radii and thresholds must be positive."""
        if not (self.margin > 0 and self.rho >= 0 and self.reset_below >= 0):
            raise ConfigError(
                f"method: SAR(margin={self.margin}, rho={self.rho}, reset_below={self.reset_below}) is not allowed; "
                "margin must be > 0, rho and reset_below >= 0."
            )
        if self.second_pass not in ("all", "selected"):
            raise ConfigError(f"method: SAR second_pass={self.second_pass!r}; allowed are 'all' and 'selected'.")
        if self.quirks not in ("fixed", "reference"):
            raise ConfigError(f"method: SAR quirks={self.quirks!r}; allowed are 'fixed' and 'reference'.")

    def init(self, context: Beginning) -> State:
        """No moving average yet, which NaN says."""
        return {"entropy_average": torch.full_like(context.theta[:, 0], torch.nan)}

    def select(self, context: Context, made: Pass, state: State) -> tuple[Selection, State]:
        """Reliable samples."""
        return Selection.of(entropy(made.logits.detach()) < self.margin * context.log_classes), state

    def update(self, context: Context, state: State) -> Proposal:
        """Ascend to the perturbed point, descend with its gradient."""
        first = context.passes()
        reliable, _ = self.select_all(context, first, state)
        ascent, _ = context.descend(first, reliable)
        norm = ascent.norm(dim=1, keepdim=True)
        perturbed = (context.theta + self.rho * ascent / (norm + 1e-12)).requires_grad_()
        whole_batch = self.second_pass == "all"
        second = [
            context.forward(made, where=kept.mask, theta=perturbed, statistics_of_all=whole_batch, grad=True)
            for made, kept in zip(first, reliable, strict=True)
        ]
        still = [self._still_reliable(context, again, kept) for again, kept in zip(second, reliable, strict=True)]
        direction, losses = context.descend(second, still)
        moves = any_selected(still)
        average = self._moving_average(state["entropy_average"], second, still)
        resets = average < self.reset_below
        fixed = self.quirks == "fixed"
        return Proposal(
            context.prediction(first),
            still,
            direction,
            moves=moves if fixed else torch.ones_like(moves),
            resets=resets,
            state={"entropy_average": torch.where(resets, torch.nan, average) if fixed else average},
            keep_momentum=not fixed,
            losses=losses,
        )

    def _still_reliable(self, context: Context, again: Pass, kept: Selection) -> Selection:
        low = entropy(again.logits.detach()) < self.margin * context.log_classes
        return Selection.of(kept.mask, kept.mask & low)

    def _moving_average(self, average: Tensor, passes: list[Pass], selections: list[Selection]) -> Tensor:
        entropies = torch.cat([entropy(made.logits.detach()) for made in passes], dim=1)
        mask = torch.cat([selection.mask for selection in selections], dim=1)
        value = masked_mean(entropies, mask).to(average.dtype)
        moved = torch.where(average.isnan(), value, 0.9 * average + 0.1 * value)
        return torch.where(mask.any(dim=1), moved, average)
