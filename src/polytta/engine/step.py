"""One whole step as a pure function: a state and a batch in, an answer and the next state out.

Nothing here reads a value back to the host (given an engine of static shapes), so that a step can also be recorded
once and replayed. Several populations may share a step: their particles are more rows of the same passes, and never
meet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from polytta.aggregate import evidence
from polytta.engine.context import BatchContext
from polytta.engine.parts import Parts
from polytta.engine.state import PopulationState
from polytta.errors import ConfigError
from polytta.guard import accepted, all_in_range, finite_rows_of, usable_direction
from polytta.particles import Engine
from polytta.roles import Lesson, Objective, Sight


@dataclass(frozen=True)
class StepResult:
    """What a step gives.

    Attributes:
        answer: (G, B, C) log-probabilities of each population.
        logits: (G·K, B, C) of the particles, which the answer was made from.
        numbers: what the report says, as one vector (``polytta.report.StepEntry``).
        measures: what the diversifier found out.
        state: the tensors after the step.
    """

    answer: Tensor
    logits: Tensor
    numbers: Tensor
    measures: Mapping[str, Tensor]
    state: PopulationState


@dataclass(frozen=True)
class Step:
    """Everything a step needs besides state and batch.

    Attributes:
        engine: runs the passes.
        parts: method, diversifier, optimizer, aggregate, views, lenses.
        guarded: leave the state as it is when the batch has values nothing should be learnt from; for steps that start
            before anybody has looked at the batch.
    """

    engine: Engine
    parts: Parts
    guarded: bool = False

    def __call__(self, state: PopulationState, x: Tensor) -> StepResult:
        """Predicts on ``x`` (G, B, ...) and learns from it."""
        parts, source = self.parts, self.parts.source
        start = self._fresh(state) if parts.episodic else state

        # Predict.
        context = BatchContext(self.engine, parts, start.theta, x, state.step)
        sight = context.sight(start.method)

        # Select, descend, diversify; a method may look at what came out and choose another lesson.
        lesson = parts.method.learn(context, sight.passes, start.method) if parts.method.adapts else Lesson()
        healthy = torch.ones(context.particles, dtype=torch.bool, device=x.device)
        losses = start.theta.new_zeros(context.particles)
        direction: Tensor | None = None
        measures: dict[str, Tensor] = {}
        while lesson.terms:
            learners = lesson.learners
            theta = lesson.terms[0].passes[0].theta
            direction, losses = torch.zeros_like(theta), torch.zeros_like(losses)
            found: dict[str, Tensor] = {}
            if self.engine.static_shapes or bool(learners.any()):
                for term in lesson.terms:
                    kept = term.selection.mask.sum(dim=1) * len(term.passes)
                    context.backward_samples = context.backward_samples + kept
                objective = Objective(
                    theta,
                    source,
                    lesson.terms,
                    lesson.penalty,
                    context.again,
                    context.particles // parts.populations,
                    parts.populations,
                    self.engine.rounding,
                    self.engine.weighted_sums,
                    found,
                )
                own = objective.losses()
                towards = parts.diversifier.direction(objective, own)
                if parts.divisor > 1:
                    towards = towards / parts.divisor
                direction, finite = usable_direction(towards, learners)
                losses, healthy = own.detach(), healthy & finite
                for name, value in found.items():
                    measures[name] = value.detach()
            if lesson.look_again is None:
                break
            lesson = lesson.look_again(direction)

        # Move.
        theta, slots = start.theta, start.optimizer
        memory: Mapping[str, Tensor] = {**start.method, **lesson.state}
        if direction is not None and lesson.terms:
            moves = learners if lesson.moves is None else lesson.moves
            stepped = parts.optimizer.step(theta, direction, slots, state.learning_rates, source)
            theta, slots = accepted(moves & healthy, (theta, slots), stepped)
        if lesson.resets is not None:
            theta = torch.where(lesson.resets.unsqueeze(1), source, theta)
            slots = slots if lesson.keep_momentum else parts.optimizer.forget(slots, lesson.resets)
        if lesson.after_step is not None:
            wanted, changed = lesson.after_step(theta)
            theta, memory = finite_rows_of(wanted, theta), {**memory, **changed}

        # Aggregate.
        if parts.episodic:
            sight = self._sight_after(context, replace(start, theta=theta))
        answer = parts.aggregate.combine(sight.answer.unflatten(0, (parts.populations, -1)), state.evidence)
        seen = evidence.observe(state.evidence, sight.logits)

        # Record.
        after = PopulationState(theta, state.learning_rates, state.step + 1, slots, memory, seen)
        moved = (theta != start.theta).any(dim=1)
        numbers = _packed(losses, moved, lesson, context)
        return StepResult(answer, sight.answer, numbers, measures, self._settled(state, after, x))

    def predict(self, state: PopulationState, x: Tensor) -> Tensor:
        """(G·K, B, C) logits that the particles as they are would answer from."""
        with torch.no_grad():
            context = BatchContext(self.engine, self.parts, state.theta, x, state.step, learns=False)
            return context.sight(state.method).answer

    def _sight_after(self, context: BatchContext, state: PopulationState) -> Sight:
        """What particles see after the step, for methods that answer then."""
        with torch.no_grad():
            later = BatchContext(self.engine, self.parts, state.theta, context.x, context.index, learns=False)
            sight = later.sight(state.method)
        context.forward_samples = context.forward_samples + later.forward_samples
        return sight

    def _fresh(self, state: PopulationState) -> PopulationState:
        """The particles of a stream that begins with this batch; what the method remembers, it remembers."""
        theta = self.parts.source.expand_as(state.theta)
        everyone = torch.ones(theta.shape[0], dtype=torch.bool, device=theta.device)
        return replace(state, theta=theta, optimizer=self.parts.optimizer.forget(state.optimizer, everyone))

    def _settled(self, before: PopulationState, after: PopulationState, x: Tensor) -> PopulationState:
        """The new state, free of the step's history."""
        old, new = before.named(), after.named()
        if old.keys() != new.keys():
            wrong = sorted(name.removeprefix("method_") for name in old.keys() ^ new.keys())
            raise ConfigError(
                f"method: got a state with {wrong[0]!r} missing or new; allowed are the tensors that init returned."
            )
        fine = all_in_range(x) if self.guarded else None
        kept = {}
        for name, value in new.items():
            if value is old[name]:
                kept[name] = value
            else:
                kept[name] = value.detach() if fine is None else torch.where(fine, value.detach(), old[name])
        return after.with_named(kept)


def _packed(losses: Tensor, moved: Tensor, lesson: Lesson, context: BatchContext) -> Tensor:
    """All numbers of a step as one float64 vector, in the order ``polytta.report.StepEntry`` names."""
    resets = torch.zeros_like(moved) if lesson.resets is None else lesson.resets
    parts = [losses, moved, resets, context.forward_samples, context.backward_samples]
    if lesson.terms:
        parts.append(torch.stack([term.selection.counts for term in lesson.terms]).sum(dim=0).flatten())
    return torch.cat([part.to(torch.float64) for part in parts])
