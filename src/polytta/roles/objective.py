"""What a diversifier sees: the population's losses at one point of parameter space."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from polytta.roles.lesson import Term
from polytta.roles.passes import Pass, any_selected


def weighted_sums(weights: Tensor, values: Tensor) -> Tensor:
    """(..., K, B, D) Σ_j w_ijb v_jb from weights (..., K, K, B) and values (..., K, B, D)."""
    return torch.einsum("...ijb,...jbd->...ibd", weights, values)


@dataclass(frozen=True)
class Objective:
    """The losses of all particles, ready to be differentiated.

    Attributes:
        theta: (G·K, P) parameters, a leaf that gradients are taken with respect to; particles interact within their
            own of the G populations.
        source: (P,) parameters of the source model.
        terms: what each particle descends.
        penalty: (G·K,) loss on the parameters themselves, or None.
        again: repeats a pass with others in place of its ``images``, for at least the (particle, sample) pairs marked.
        particles: K.
        populations: G.
        rounding: relative rounding error of the passes.
        weighted_sums: the sums of that name, as the engine at hand computes them.
        measures: what the diversifier found out on the way, for the report: one value per population each.
    """

    theta: Tensor
    source: Tensor
    terms: Sequence[Term]
    penalty: Tensor | None
    again: Callable[[Pass, Tensor, Tensor], Pass]
    particles: int
    populations: int = 1
    rounding: float = 2.0**-23
    weighted_sums: Callable[[Tensor, Tensor], Tensor] = weighted_sums
    measures: dict[str, Tensor] = field(default_factory=dict)

    @property
    def learners(self) -> Tensor:
        """(G·K,) the particles that kept a sample."""
        return any_selected([term.selection for term in self.terms])

    def by_population(self, rows: Tensor) -> Tensor:
        """(G·K, ...) to (G, K, ...)."""
        return rows.unflatten(0, (self.populations, self.particles))

    def weighted(self, term: Term, passes: Sequence[Pass] | None = None) -> Tensor:
        """(G·K, B) losses of the selected samples times their weights, 0 elsewhere; of other passes where given."""
        losses = term.losses(term.passes if passes is None else passes)
        if term.selection.weight is not None:
            losses = losses * term.selection.weight
        return torch.where(term.selection.mask, losses, torch.zeros_like(losses))

    def losses(self) -> Tensor:
        """(G·K,) mean over each particle's selected samples, summed over terms, plus the penalty."""
        total = self.theta.new_zeros(self.theta.shape[0])
        for term in self.terms:
            total = total + self.weighted(term).sum(dim=1) / term.selection.mask.sum(dim=1).clamp(min=1)
        return total if self.penalty is None else total + self.penalty

    def gradient(self, value: Tensor, *, retain_graph: bool = False) -> Tensor:
        """(G·K, P) gradient of a scalar."""
        return torch.autograd.grad(value, self.theta, retain_graph=retain_graph)[0]
