"""One step of the population, from a screened batch to a method's proposal.

``Step`` is the context a method works in. It owns what only this step needs (the random numbers, the counts of work
done) and joins the rooms: views make passes, the engine runs them, the diversifier turns losses into directions.
Several populations may share a step: their particles are more rows of the same passes, and never meet.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from polytta.diversity import Diversifier, Objective
from polytta.methods.base import Method, Pass, Selection, any_selected
from polytta.particles import Engine
from polytta.roles.noise import Noise
from polytta.views import Views
from polytta.views.lenses import Lenses


@dataclass(frozen=True)
class Rules:
    """What stays the same from step to step.

    Attributes:
        method: the base method.
        diversifier: how particles interact.
        views: versions of the batch to learn from.
        lenses: how each particle looks at them.
        objective: "scaled", or "literal" for the paper's 1/K.
        populations: G.
        noise_keys: (views, G·K) keys of the random numbers.
    """

    method: Method
    diversifier: Diversifier
    views: Views
    lenses: Lenses
    objective: Literal["scaled", "literal"]
    populations: int
    noise_keys: Tensor


class Step:
    """Implements ``polytta.methods.base.Context`` for one batch.

    Args:
        engine: runs the passes.
        rules: method, diversifier and what else is fixed.
        theta: (G·K, P) particles, population by population.
        source: (P,) source parameters.
        x: (G, B, ...) usable images, one batch per population.
        index: () number of the step in the stream; random numbers depend on it alone, so a resumed stream draws the
            same.
        learns: whether this step may learn, or only predicts.
    """

    def __init__(
        self,
        engine: Engine,
        rules: Rules,
        theta: Tensor,
        source: Tensor,
        x: Tensor,
        index: Tensor,
        *,
        learns: bool = True,
    ) -> None:
        self.engine = engine
        self.rules = rules
        self.learns = learns and rules.method.adapts
        self.theta = theta.detach().requires_grad_(self.learns)
        self.source = source
        self.x = x
        self.index = index
        self.particles = theta.shape[0]
        self.num_classes = engine.findings.num_classes
        self.log_classes = math.log(self.num_classes)
        self.forward_samples = torch.zeros(self.particles, dtype=torch.int64, device=theta.device)
        self.backward_samples = torch.zeros_like(self.forward_samples)
        self.measures: dict[str, Tensor] = {}
        self.healthy = torch.ones(self.particles, dtype=torch.bool, device=theta.device)

    def passes(self) -> list[Pass]:
        """One differentiable pass per view; only the views a prediction needs when nothing is to be learnt."""
        made = []
        populations, batch = self.x.shape[:2]
        for view, images in enumerate(self.rules.views.of(self.x.flatten(0, 1), to_predict=not self.learns)):
            seen = self.rules.lenses.of(images, self.particles // populations)
            folded = seen.unflatten(1, (populations, batch)).transpose(0, 1).flatten(0, 1)
            if self.learns and self.rules.diversifier.needs_input_gradient:
                folded = folded.clone().requires_grad_()
            made.append(self._run(self.theta, folded, None, view))
        return made

    def prediction(self, passes: Sequence[Pass]) -> Tensor:
        """(G·K, B, C) logits that the answer is made from."""
        return self.rules.views.combine([made.logits.detach() for made in passes])

    def forward(
        self,
        near: Pass,
        *,
        x: Tensor | None = None,
        where: Tensor | None = None,
        theta: Tensor | None = None,
        statistics_of_all: bool = False,
        grad: bool = False,
    ) -> Pass:
        """Another pass like ``near``."""
        if statistics_of_all and self.engine.uses_batch_statistics:
            where = None
        if grad and where is not None:
            where = self._with_partners(where)
        with torch.set_grad_enabled(grad):
            return self._run(near.theta if theta is None else theta, near.x if x is None else x, where, near.view)

    def descend(self, passes: Sequence[Pass], selections: Sequence[Selection]) -> tuple[Tensor, Tensor]:
        """Direction (G·K, P) of the diversified objective, and the losses (G·K,)."""
        theta = passes[0].theta
        active = any_selected(selections)
        if not self.engine.static_shapes and not bool(active.any()):
            return torch.zeros_like(theta), theta.new_zeros(self.particles)
        for selection in selections:
            self.backward_samples = self.backward_samples + selection.mask.sum(dim=1)
        method = self.rules.method
        penalty = method.penalty(self, theta)
        objective = Objective(
            theta,
            self.source,
            passes,
            selections,
            method.sample_losses,
            penalty,
            self._again,
            self.rules.populations,
            self.engine.rounding,
        )
        losses = objective.losses()
        direction = self.rules.diversifier.direction(objective, losses)
        self.measures.update(objective.measures)
        if self.rules.objective == "literal":
            direction = direction / objective.particles
        finite = direction.isfinite().all(dim=1)
        self.healthy = self.healthy & finite
        return torch.where((active & finite).unsqueeze(1), direction, torch.zeros_like(direction)), losses.detach()

    def noise(self, view: int) -> Noise:
        """The particles' random numbers for this step and view."""
        return Noise(self.rules.noise_keys[view], self.index)

    def flatten(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Tensors named like the model's parameters as one vector (P,)."""
        return self.engine.flatten(tensors)

    def _again(self, near: Pass, x: Tensor, needed: Tensor) -> Pass:
        # Fewer rows would change batch statistics, so those see again what they saw.
        where = near.where if self.engine.uses_batch_statistics else needed
        self.backward_samples = self.backward_samples + needed.sum(dim=1)
        return self.forward(near, x=x, where=where, grad=True)

    def _with_partners(self, where: Tensor) -> Tensor | None:
        """A pass that is learnt from must also hold what the diversifier compares it with."""
        compared = self.rules.diversifier.compares_predictions_on
        if compared == "all":
            return None
        if compared == "nothing":
            return where
        grouped = where.unflatten(0, (self.rules.populations, -1))
        return grouped.any(dim=1, keepdim=True).expand_as(grouped).flatten(0, 1)

    def _run(self, theta: Tensor, x: Tensor, where: Tensor | None, view: int) -> Pass:
        self.forward_samples = self.forward_samples + (x.shape[1] if where is None else where.sum(dim=1))
        twice = self.learns and self.rules.diversifier.differentiates_twice(x)
        logits = self.engine.logits(theta, x, where, twice=twice)
        return Pass(theta, x, finite_rows(logits), where, view)


def finite_rows(logits: Tensor) -> Tensor:
    """Rows with a non-finite logit become zeros, that is a uniform prediction.

    What overflowed inside the network may still spoil the gradient; then ``Step.healthy`` keeps the particle in place.
    """
    return torch.where(logits.isfinite().all(dim=-1, keepdim=True), logits, torch.zeros_like(logits))
