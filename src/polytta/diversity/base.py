"""The role of a diversifier: turn the particles' losses into the directions they descend.

A diversifier sees an ``Objective`` — the population at one point, with its selected samples — and never learns which
base method made it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from polytta.diversity.input_gradients import mean_cosine
from polytta.methods.base import Pass, Selection


@dataclass(frozen=True)
class Objective:
    """The population's losses at one point of parameter space.

    Attributes:
        theta: (G·K, P) parameters, a leaf that gradients are taken with respect to; particles interact within their
            own of the G populations.
        source: (P,) parameters of the source model.
        passes: one per view.
        selections: one per view.
        sample_losses: logits (K, B, C) to losses (K, B).
        penalty: (K,) loss on the parameters themselves, or None.
        again: repeats a pass with other images, for at least the (particle, sample) pairs marked.
        populations: G.
        rounding: relative rounding error of the passes.
        measures: what the diversifier found out on the way, for the report.
    """

    theta: Tensor
    source: Tensor
    passes: Sequence[Pass]
    selections: Sequence[Selection]
    sample_losses: Callable[[Tensor], Tensor]
    penalty: Tensor | None
    again: Callable[[Pass, Tensor, Tensor], Pass]
    populations: int = 1
    rounding: float = 2.0**-23
    measures: dict[str, Tensor] = field(default_factory=dict)

    @property
    def particles(self) -> int:
        """K."""
        return self.theta.shape[0] // self.populations

    def by_population(self, rows: Tensor) -> Tensor:
        """(G·K, ...) to (G, K, ...)."""
        return rows.unflatten(0, (self.populations, self.particles))

    def weighted(self, made: Pass, selection: Selection) -> Tensor:
        """(K, B) losses of the selected samples times their weights, 0 elsewhere."""
        losses = self.sample_losses(made.logits)
        if selection.weight is not None:
            losses = losses * selection.weight
        return torch.where(selection.mask, losses, torch.zeros_like(losses))

    def losses(self) -> Tensor:
        """(K,) mean over each particle's selected samples, summed over views, plus the penalty."""
        total = self.theta.new_zeros(self.theta.shape[0])
        for made, selection in zip(self.passes, self.selections, strict=True):
            total = total + self.weighted(made, selection).sum(dim=1) / selection.mask.sum(dim=1).clamp(min=1)
        return total if self.penalty is None else total + self.penalty

    def note_input_gradients(self, dots: Tensor, mask: Tensor) -> None:
        """Remembers, for the report, how alike the particles' input gradients are; views are averaged."""
        cosine = mean_cosine(dots.detach(), self.by_population(mask)) / len(self.passes)
        self.measures["input_gradient_cosine"] = (
            self.measures.get("input_gradient_cosine", torch.zeros_like(cosine)) + cosine
        )

    def gradient(self, value: Tensor, *, retain_graph: bool = False) -> Tensor:
        """(K, P) gradient of a scalar."""
        return torch.autograd.grad(value, self.theta, retain_graph=retain_graph)[0]


class Diversifier(ABC):
    """Base of all diversifiers. Subclasses are frozen dataclasses with a ``name``."""

    name: ClassVar[str]
    needs_input_gradient: ClassVar[bool] = False
    """Whether passes must be differentiable with respect to the images."""

    def differentiates_twice(self, x: Tensor) -> bool:
        """Whether passes over ``x`` need a second derivative, which fused attention does not have."""
        return False

    @property
    def compares_predictions_on(self) -> Literal["nothing", "selected", "all"]:
        """The samples on which a particle's predictions are held against the others', which must then have them."""
        return "nothing"

    def validate(self) -> None:
        """Raises ConfigError when a field has a value that is not allowed."""

    def kernel_matrix(self, theta: Tensor) -> Tensor | None:
        """(K, K) similarity of particles, where the diversifier has one."""
        return None

    @abstractmethod
    def direction(self, objective: Objective, losses: Tensor) -> Tensor:
        """(K, P) direction to descend, scaled so that one particle alone gets its plain gradient."""
