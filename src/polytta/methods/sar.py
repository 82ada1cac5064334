r"""SAR: sharpness-aware entropy minimisation on reliable samples, with recovery from collapse.

    S₁ = {b : H_b(θ) < E₀},  g = ∇ mean_{S₁} H(θ),  θ' = θ + ρ g / ‖g‖
    S₂ = {b ∈ S₁ : H_b(θ') < E₀},  θ ← θ - η ∇ mean_{S₂} H(θ')
    e ← 0.9 e + 0.1 · mean_{S₂} H(θ');  if e < reset_below: θ ← θ⁰

Niu et al., "Towards Stable Test-Time Adaptation in Dynamic Wild World", ICLR 2023. Two things in the public code are
faults and are fixed here: momentum keeps moving the weights when nothing was selected, and a reset clears neither the
moving average nor the momentum. ``quirks`` brings them back, for comparison with published runs: "reference" as in
SAR's own code, "deyo" as in the copy that DeYO's code carries, which stands still when nothing passes the first filter
and coasts on its momentum when only the second is empty.
"""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from polytta.errors import ConfigError
from polytta.methods.base import Method
from polytta.roles import Context, Lesson, Pass, Selection, Start, State, Term, entropy, masked_mean


@dataclass(frozen=True)
class SAR(Method):
    """Sharpness-aware and reliable entropy minimisation.

    Attributes:
        entropy_threshold: E₀ as a fraction of ln C.
        rho: radius of the sharpness-aware perturbation.
        reset_below: a particle whose moving average of entropy falls below this (in nats) returns to source.
        second_pass: samples the perturbed pass sees: "all" (SAR's code) or "selected" (the copy in DeYO's code). They
            differ only where BatchNorm takes statistics of the batch.
        quirks: "fixed", "reference" for what SAR's public code does, "deyo" for what its copy in DeYO's code does.
        margin: former name of ``entropy_threshold``.
    """

    entropy_threshold: float = 0.4
    rho: float = 0.05
    reset_below: float = 0.2
    second_pass: Literal["all", "selected"] = "all"
    quirks: Literal["fixed", "reference", "deyo"] = "fixed"
    margin: InitVar[float | None] = None

    name: ClassVar[str] = "sar"
    filters: ClassVar[tuple[str, ...]] = ("entropy", "perturbed entropy")
    single_image_lr_factor: ClassVar[float] = 2.0

    def __post_init__(self, margin: float | None) -> None:
        if margin is not None:
            object.__setattr__(self, "entropy_threshold", margin)

    def validate(self) -> None:
        """Radii and thresholds must be positive."""
        if not (self.entropy_threshold > 0 and self.rho >= 0 and self.reset_below >= 0):
            raise ConfigError(
                f"method: got SAR(entropy_threshold={self.entropy_threshold}, rho={self.rho}, "
                f"reset_below={self.reset_below}); allowed are entropy_threshold > 0, rho and reset_below >= 0."
            )
        if self.second_pass not in ("all", "selected"):
            raise ConfigError(f"method: got SAR(second_pass={self.second_pass!r}); allowed are 'all' and 'selected'.")
        if self.quirks not in ("fixed", "reference", "deyo"):
            raise ConfigError(f"method: got SAR(quirks={self.quirks!r}); allowed are 'fixed', 'reference' and 'deyo'.")

    def init(self, start: Start) -> State:
        """No moving average yet, which NaN says."""
        return {"entropy_average": torch.full_like(start.theta[:, 0], torch.nan)}

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        """Reliable samples."""
        return Selection.of(entropy(forward_pass.logits.detach()) < self.entropy_threshold * context.log_classes), state

    def learn(self, context: Context, passes: Sequence[Pass], state: State) -> Lesson:
        """The reliable samples, to be learnt from at the perturbed point that they lead to."""
        first = super().learn(context, passes, state)
        return replace(first, look_again=lambda direction: self._at_perturbed_point(context, first, direction))

    def _at_perturbed_point(self, context: Context, first: Lesson, direction: Tensor) -> Lesson:
        norm = direction.norm(dim=1, keepdim=True)
        perturbed = (context.theta + self.rho * direction / (norm + 1e-12)).requires_grad_()
        terms = [self._still_reliable(context, term, perturbed) for term in first.terms]
        average = self._moving_average(first.state["entropy_average"], terms)
        resets = average < self.reset_below
        fixed = self.quirks == "fixed"
        return Lesson(
            terms,
            state={"entropy_average": torch.where(resets, torch.nan, average) if fixed else average},
            penalty=self.penalty(context, perturbed),
            moves={"fixed": None, "reference": torch.ones_like(resets), "deyo": first.learners}[self.quirks],
            resets=resets,
            keep_momentum=not fixed,
        )

    def _still_reliable(self, context: Context, first: Term, perturbed: Tensor) -> Term:
        mask = first.selection.mask
        whole_batch = self.second_pass == "all"
        again = context.forward(first.passes[0], where=mask, theta=perturbed, statistics_of_all=whole_batch, grad=True)
        low = entropy(again.logits.detach()) < self.entropy_threshold * context.log_classes
        return Term((again,), Selection.of(mask, mask & low), first.losses)

    def _moving_average(self, average: Tensor, terms: Sequence[Term]) -> Tensor:
        entropies = torch.cat([entropy(term.passes[0].logits.detach()) for term in terms], dim=1)
        mask = torch.cat([term.selection.mask for term in terms], dim=1)
        value = masked_mean(entropies, mask).to(average.dtype)
        moved = torch.where(average.isnan(), value, 0.9 * average + 0.1 * value)
        return torch.where(mask.any(dim=1), moved, average)
