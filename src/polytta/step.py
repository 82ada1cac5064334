"""One step of the population, from a screened batch to a method's proposal.

``Step`` is the context a method works in. It owns what only this step needs (the random numbers, the counts of work
done) and joins the rooms: views make passes, the engine runs them, the diversifier turns losses into directions.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from polytta.diversity import Diversifier, Objective
from polytta.methods.base import Method, Pass, Selection, State, any_selected
from polytta.particles import Engine
from polytta.particles.folded import fold_batch
from polytta.views import Views


@dataclass(frozen=True)
class Rules:
    """What stays the same from step to step."""

    method: Method
    diversifier: Diversifier
    views: Views
    objective: Literal["scaled", "literal"]
    seed: int
    shared_noise: bool


class Step:
    """Implements ``polytta.methods.base.Context`` for one batch.

    Args:
        engine: runs the passes.
        rules: method, diversifier and what else is fixed.
        theta: (K, P) particles.
        source: (P,) source parameters.
        x: (B, ...) usable images.
        index: number of the step in the stream; random numbers depend on it alone, so a resumed stream draws the same.
    """

    def __init__(self, engine: Engine, rules: Rules, theta: Tensor, source: Tensor, x: Tensor, index: int) -> None:
        self.engine = engine
        self.rules = rules
        self.theta = theta.detach().requires_grad_(rules.method.adapts)
        self.source = source
        self.x = x
        self.index = index
        self.particles = theta.shape[0]
        self.num_classes = engine.findings.num_classes
        self.log_classes = math.log(self.num_classes)
        self.forward_samples: Tensor | int = 0
        self.backward_samples: Tensor | int = 0
        self.measures: dict[str, Tensor] = {}
        self.healthy = torch.ones(self.particles, dtype=torch.bool, device=theta.device)

    def passes(self, theta: Tensor | None = None) -> list[Pass]:
        """One differentiable pass per view."""
        at = self.theta if theta is None else theta
        made = []
        for view, images in enumerate(self.rules.views.of(self.x)):
            folded = fold_batch(images, self.particles)
            if self.rules.diversifier.needs_input_gradient and self.rules.method.adapts:
                folded = folded.clone().requires_grad_()
            made.append(self._run(Pass(at, folded, folded, view=view)))
        return made

    def prediction(self, passes: Sequence[Pass]) -> Tensor:
        """(K, B, C) logits that the answer is made from."""
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
        changed = replace(near, where=where)
        changed = changed if x is None else replace(changed, x=x)
        changed = changed if theta is None else replace(changed, theta=theta)
        with torch.set_grad_enabled(grad):
            return self._run(changed)

    def descend(self, passes: Sequence[Pass], selections: Sequence[Selection], state: State) -> tuple[Tensor, Tensor]:
        """Direction (K, P) of the diversified objective, and the losses (K,)."""
        theta = passes[0].theta
        active = any_selected(selections)
        if not self.engine.static_shapes and not bool(active.any()):
            return torch.zeros_like(theta), theta.new_zeros(self.particles)
        for selection in selections:
            self.backward_samples = self.backward_samples + selection.mask.sum()
        method = self.rules.method
        penalty = method.penalty(self, theta)
        objective = Objective(theta, self.source, passes, selections, method.sample_losses, penalty, self._again)
        losses = objective.losses()
        direction = self.rules.diversifier.direction(objective, losses)
        self.measures.update(objective.measures)
        if self.rules.objective == "literal":
            direction = direction / self.particles
        finite = direction.isfinite().all(dim=1)
        self.healthy = self.healthy & finite
        return torch.where((active & finite).unsqueeze(1), direction, torch.zeros_like(direction)), losses.detach()

    def generator(self, particle: int, view: int) -> torch.Generator:
        """The particle's own random numbers for this step and view."""
        owner = 0 if self.rules.shared_noise else particle
        return torch.Generator().manual_seed(_mix(self.rules.seed, owner, self.index, view))

    def flatten(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Tensors named like the model's parameters as one vector (P,)."""
        return self.engine.layout.flatten(tensors)

    def _again(self, near: Pass, x: Tensor, needed: Tensor) -> Pass:
        # Fewer rows would change batch statistics, so those see again what they saw.
        where = near.where if self.engine.uses_batch_statistics else needed
        return self.forward(near, x=x, where=where, grad=True)

    def _run(self, wanted: Pass) -> Pass:
        count = self.particles * wanted.x.shape[1] if wanted.where is None else wanted.where.sum()
        self.forward_samples = self.forward_samples + count
        with _twice_differentiable() if self.rules.diversifier.differentiates_twice else nullcontext():
            logits = self.engine.logits(wanted.theta, wanted.x, wanted.where)
        return replace(wanted, logits=finite_rows(logits))


def finite_rows(logits: Tensor) -> Tensor:
    """Rows with a non-finite logit become zeros, that is a uniform prediction, and carry no gradient."""
    return torch.where(logits.isfinite().all(dim=-1, keepdim=True), logits, torch.zeros_like(logits))


def _twice_differentiable() -> AbstractContextManager[None]:
    return sdpa_kernel([SDPBackend.MATH])


def _mix(*numbers: int) -> int:
    """One well-spread 63-bit seed from several small integers (splitmix64's finaliser, folded over them)."""
    mask, state = 2**64 - 1, 0
    for number in numbers:
        state = (state + number + 0x9E3779B97F4A7C15) & mask
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & mask
        state ^= state >> 31
    return state >> 1
