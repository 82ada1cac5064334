r"""Output level: particles that predict differently.

    Ω_KL = - 1/(K(K-1)) · Σ_{i≠j} mean_{b∈Sᵢ} D_KL(pᵢ(x_b) ‖ pⱼ(x_b)),    minimise Σᵢ ℓᵢ + K λ Ω_KL

Equation 4 of the multi-hypothesis paper, λ = 0.01. The divergence is unbounded in its second argument, so that taken
as printed it can run away; log-probabilities are clamped from below, beyond which a pair is not pushed further apart.
A particle that kept nothing is a fixed reference for the others.
"""

from dataclasses import dataclass
from math import inf, log
from typing import ClassVar, Literal

import torch
from torch import Tensor

from polytta.diversity.base import Diversifier
from polytta.errors import ConfigError
from polytta.roles import Objective


@dataclass(frozen=True)
class KL(Diversifier):
    """Pairwise Kullback-Leibler divergence between predictions, maximised. No effect on a single particle.

    Attributes:
        weight: λ.
        samples: "selected" compares on the samples the first particle of a pair kept, "all" on the whole batch.
        detach: hold the second particle of each pair constant.
        smallest_prob: probabilities are treated as at least this.
    """

    weight: float = 0.01
    samples: Literal["selected", "all"] = "selected"
    detach: bool = False
    smallest_prob: float = 1e-6

    name: ClassVar[str] = "kl"

    @property
    def compares_predictions_on(self) -> Literal["nothing", "selected", "all"]:
        """Every particle's predictions on the samples any of them kept."""
        return self.samples

    def validate(self) -> None:
        """λ must not be negative, the floor a probability."""
        if not 0 <= self.weight < inf or not 0 < self.smallest_prob < 1:
            raise ConfigError(
                f"diversity: got KL(weight={self.weight}, smallest_prob={self.smallest_prob}); "
                "allowed are finite weight >= 0 and 0 < smallest_prob < 1."
            )
        if self.samples not in ("selected", "all"):
            raise ConfigError(f"diversity: got KL(samples={self.samples!r}); allowed are 'selected' and 'all'.")

    def direction(self, objective: Objective, losses: Tensor) -> Tensor:
        """One backward pass through losses and divergence together."""
        total = losses.sum()
        if objective.particles > 1:
            total = total + objective.particles * self.weight * self.omega(objective)
        return objective.gradient(total)

    def omega(self, objective: Objective) -> Tensor:
        """Ω_KL, summed over terms and populations, averaged over the passes of a term."""
        groups = (objective.populations, objective.particles)
        total = objective.theta.new_zeros(())
        for term in objective.terms:
            selected = term.selection.mask.unflatten(0, groups)
            mask = selected if self.samples == "selected" else torch.ones_like(selected)
            for one in term.passes:
                divergence = self.divergences(one.logits.unflatten(0, groups))
                kept = torch.where(mask.unsqueeze(-2), divergence, torch.zeros_like(divergence))
                means = kept.sum(dim=-1) / mask.sum(dim=-1, keepdim=True).clamp(min=1)
                total = total - means.sum() / len(term.passes)
        return total / (objective.particles * (objective.particles - 1))

    def divergences(self, logits: Tensor) -> Tensor:
        """(..., K, K, B) D_KL(pᵢ ‖ pⱼ) per sample."""
        log_probs = logits.log_softmax(dim=-1).clamp(min=log(self.smallest_prob))
        probs = logits.softmax(dim=-1)
        second = log_probs.detach() if self.detach else log_probs
        own = (probs * log_probs).sum(dim=-1)
        return own.unsqueeze(-2) - torch.einsum("...ibc,...jbc->...ijb", probs, second)
