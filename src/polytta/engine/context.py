"""One batch at work: the passes over it, and the counts of what they cost. What methods know as their context."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from polytta.engine.parts import Parts
from polytta.particles import Engine
from polytta.roles import Pass, Sight, State, StepNoise, Term


class BatchContext:
    """Implements ``polytta.roles.Context``.

    Args:
        engine: runs the passes.
        parts: method, diversifier and what else is fixed.
        theta: (G·K, P) particles, population by population.
        x: (G, B, ...) usable images, one batch per population.
        index: () number of the step in the stream; random numbers depend on it alone, so a resumed stream draws the
            same.
        rows: which rows of the population these particles are; None means all.
        learns: whether this step may learn, or only predicts.
    """

    def __init__(
        self,
        engine: Engine,
        parts: Parts,
        theta: Tensor,
        x: Tensor,
        index: Tensor,
        rows: Tensor | None = None,
        *,
        learns: bool = True,
    ) -> None:
        self.engine = engine
        self.parts = parts
        self.learns = learns and parts.method.adapts
        self.theta = theta.detach().requires_grad_(self.learns)
        self.source = parts.source
        self.network: nn.Module = parts.network
        self.x = x
        self.batch_size = x.shape[1]
        self.uses_batch_statistics = engine.uses_batch_statistics
        self.index = index
        self.rows = rows
        self.noise = StepNoise(parts.noise_keys, index)
        self.particles = theta.shape[0]
        self.num_classes = engine.findings.num_classes
        self.log_classes = math.log(self.num_classes)
        self.forward_samples = torch.zeros(self.particles, dtype=torch.int64, device=theta.device)
        self.backward_samples = torch.zeros_like(self.forward_samples)
        self.offered, self._kept = 0, torch.zeros_like(self.forward_samples)
        self._by_images = self.learns and parts.diversifier.needs_input_gradient
        self._before_lens = self._by_images and parts.lenses.differ(self.particles // parts.populations)
        self._twice = self._by_images and parts.diversifier.differentiates_twice(x)

    def passes(self) -> list[Pass]:
        """One differentiable pass per view; only the views a prediction needs when nothing is to be learnt."""
        found = []
        seen = self.parts.seen(self.x, self.particles, to_predict=not self.learns, lensed=not self._before_lens)
        for view, images in enumerate(seen):
            unlensed = None
            if self._by_images:
                images = images.detach().clone().requires_grad_()
            if self._before_lens:
                images, unlensed = self.parts.through_lenses(images), images
            self.forward_samples = self.forward_samples + images.shape[1]
            with torch.set_grad_enabled(self.learns and self.parts.method.descends):
                logits, features = self._outputs(self.theta, images, None)
            found.append(Pass(self.theta, images, logits, None, view, unlensed, features))
        return found

    def sight(self, state: State) -> Sight:
        """What the particles see of the batch, as the method looks at it."""
        passes = self.passes()
        return self.parts.method.look(self, passes, self.prediction(passes), state)

    def prediction(self, passes: Sequence[Pass]) -> Tensor:
        """(G·K, B, C) logits that follow from the views."""
        if len(passes) == 1:
            return passes[0].logits.detach()
        return self.parts.views.combine([one.logits.detach() for one in passes])

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
        images, unlensed = (near.x, near.unlensed) if x is None or x is near.x else (x, None)
        with torch.set_grad_enabled(grad):
            if grad and unlensed is not None:
                # Whoever differentiated ``near`` may have freed its way through the lens.
                images = self.parts.through_lenses(unlensed)
            elif grad and self._by_images and not images.requires_grad:
                images = images.detach().clone().requires_grad_()
            return self._run(near.theta if theta is None else theta, images, where, near.view, unlensed)

    def again(self, near: Pass, x: Tensor, needed: Tensor) -> Pass:
        """``near`` with ``x`` for its ``images``, for at least the pairs marked, to be differentiated by parameters."""
        # Fewer rows would change batch statistics, so those see again what they saw.
        where = near.where if self.engine.uses_batch_statistics else needed
        self.backward_samples = self.backward_samples + needed.sum(dim=1)
        if where is not None:
            where = self._with_partners(where)
        with torch.enable_grad():
            if near.unlensed is None:
                return self._run(near.theta, x, where, near.view)
            return self._run(near.theta, self.parts.through_lenses(x), where, near.view, x)

    def count_selected(self, terms: Sequence[Term]) -> None:
        """Counts images whose loss is differentiated, of those that could have been."""
        for term in terms:
            kept = term.selection.mask.sum(dim=1) * len(term.passes)
            self.backward_samples, self._kept = self.backward_samples + kept, self._kept + kept
            self.offered += term.selection.mask.shape[1] * len(term.passes)

    @property
    def selected_share(self) -> Tensor:
        """(G·K,) of the images that a loss was offered, those it was taken of; 0 where nothing was to be learnt."""
        return self._kept / max(1, self.offered)

    def flatten(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Tensors named like the model's parameters as one vector (P,)."""
        return self.engine.flatten(tensors)

    def _with_partners(self, where: Tensor) -> Tensor | None:
        """A pass that is learnt from must also hold what the diversifier compares it with."""
        compared = self.parts.diversifier.compares_predictions_on
        if compared == "all":
            return None
        if compared == "nothing":
            return where
        grouped = where.unflatten(0, (self.parts.populations, -1))
        return grouped.any(dim=1, keepdim=True).expand_as(grouped).flatten(0, 1)

    def _run(self, theta: Tensor, x: Tensor, where: Tensor | None, view: int, unlensed: Tensor | None = None) -> Pass:
        self.forward_samples = self.forward_samples + (x.shape[1] if where is None else where.sum(dim=1))
        logits, features = self._outputs(theta, x, where)
        return Pass(theta, x, logits, where, view, unlensed, features)

    def _outputs(self, theta: Tensor, x: Tensor, where: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Logits and features, the former by each particle's own text where it has one."""
        logits, features = self.engine.outputs(theta, x, where, twice=self._twice, rows=self.rows)
        if self.parts.text is None or features is None:
            return logits, features
        classify: Any = self.network.classify
        return classify(features, self.parts.text).to(logits.dtype), features
