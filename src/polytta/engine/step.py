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
from polytta.guard import accepted, all_in_range, usable_direction
from polytta.particles import Engine
from polytta.report import pack
from polytta.roles import Lesson, Objective


@dataclass(frozen=True)
class StepResult:
    """What a step gives.

    Attributes:
        answer: (G, B, C) log-probabilities of each population.
        logits: (G·K, B, C) of the particles, which the answer was made from.
        numbers: what the report says, packed (``polytta.report.pack``).
        measures: what the diversifier found out.
        state: the tensors after the step.
    """

    answer: Tensor
    logits: Tensor
    numbers: Tensor
    measures: Mapping[str, Tensor]
    state: PopulationState


@dataclass(frozen=True)
class Descent:
    """Where particles would go.

    Attributes:
        direction: (G·K, P) to descend; zeros for those that learn nothing.
        losses: (G·K,) values for the report.
        healthy: (G·K,) booleans: the direction is finite.
        measures: what the diversifier found out.
    """

    direction: Tensor
    losses: Tensor
    healthy: Tensor
    measures: Mapping[str, Tensor]


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
        method, aggregate = self.parts.method, self.parts.aggregate
        start = self._episode(state) if method.episodic else state
        context = BatchContext(self.engine, self.parts, start.theta, x, state.step)
        passes = context.passes()
        logits = context.prediction(passes)
        lesson = method.learn(context, passes, start.method) if method.adapts else Lesson(state=state.method)
        lesson, descent = self._descend(context, lesson)
        after = self._move(context, start, lesson, descent)
        if method.episodic:
            logits = self._predict_again(context, after)
        if lesson.answer is not None:
            logits = lesson.answer.detach()
        answer = aggregate.combine(logits.unflatten(0, (self.parts.populations, -1)), state.evidence)
        after = replace(after, step=state.step + 1, evidence=evidence.observe(state.evidence, logits))
        moved = (after.theta != start.theta).any(dim=1)
        losses, measures = (None, {}) if descent is None else (descent.losses, descent.measures)
        numbers = pack(moved, losses, lesson, context.forward_samples, context.backward_samples)
        return StepResult(answer, logits, numbers, measures, self._settled(state, after, x))

    def predict(self, theta: Tensor, x: Tensor, index: Tensor) -> Tensor:
        """(G·K, B, C) logits of the particles as they are."""
        with torch.no_grad():
            context = BatchContext(self.engine, self.parts, theta, x, index, learns=False)
            return context.prediction(context.passes())

    def _episode(self, state: PopulationState) -> PopulationState:
        """The state of a stream that begins with this batch."""
        theta = self.parts.source.expand_as(state.theta)
        forgotten = torch.ones(theta.shape[0], dtype=torch.bool, device=theta.device)
        return replace(state, theta=theta, optimizer=self.parts.optimizer.forget(state.optimizer, forgotten))

    def _predict_again(self, context: BatchContext, after: PopulationState) -> Tensor:
        """(G·K, B, C) logits after the step, for methods that answer then."""
        with torch.no_grad():
            later = BatchContext(self.engine, self.parts, after.theta, context.x, context.index, learns=False)
            logits = later.prediction(later.passes())
        context.forward_samples = context.forward_samples + later.forward_samples
        return logits

    def _descend(self, context: BatchContext, lesson: Lesson) -> tuple[Lesson, Descent | None]:
        """A direction for the lesson, or for the one that a second look puts in its place."""
        if not lesson.terms:
            return lesson, None
        first = self._direction(context, lesson)
        again = self.parts.method.look_again(context, lesson, first.direction)
        if again is None:
            return lesson, first
        second = self._direction(context, again)
        measures = {**first.measures, **second.measures}
        return again, replace(second, healthy=first.healthy & second.healthy, measures=measures)

    def _direction(self, context: BatchContext, lesson: Lesson) -> Descent:
        """Where the losses and the interaction of particles lead."""
        learners = lesson.learners
        theta = lesson.terms[0].passes[0].theta
        if not self.engine.static_shapes and not bool(learners.any()):
            return Descent(torch.zeros_like(theta), theta.new_zeros(len(theta)), torch.ones_like(learners), {})
        for selection in lesson.selections:
            context.backward_samples = context.backward_samples + selection.mask.sum(dim=1)
        objective = Objective(
            theta,
            self.parts.source,
            lesson.terms,
            lesson.penalty,
            context.again,
            self.parts.populations,
            self.engine.rounding,
            self.engine.weighted_sums,
        )
        losses = objective.losses()
        direction = self.parts.diversifier.direction(objective, losses)
        if self.parts.literal:
            direction = direction / objective.particles
        direction, healthy = usable_direction(direction, learners)
        measures = {name: value.detach() for name, value in objective.measures.items()}
        return Descent(direction, losses.detach(), healthy, measures)

    def _move(
        self, context: BatchContext, state: PopulationState, lesson: Lesson, descent: Descent | None
    ) -> PopulationState:
        """Parameters, optimizer and method after particles moved and some of them started over."""
        theta, slots = state.theta, state.optimizer
        if descent is not None:
            moves = lesson.learners if lesson.moves is None else lesson.moves
            stepped = self.parts.optimizer.step(theta, descent.direction, slots, state.learning_rates, context.source)
            theta, slots = accepted(moves & descent.healthy, (theta, slots), stepped)
        if lesson.resets is not None:
            theta = torch.where(lesson.resets.unsqueeze(1), context.source, theta)
            if not lesson.keep_momentum:
                slots = self.parts.optimizer.forget(slots, lesson.resets)
        theta, memory = self.parts.method.after_step(context, theta, lesson.state)
        return replace(state, theta=theta, optimizer=slots, method=memory)

    def _settled(self, before: PopulationState, after: PopulationState, x: Tensor) -> PopulationState:
        """The new state, free of the step's history."""
        old, new = before.named(), after.named()
        fine = all_in_range(x) if self.guarded else None
        kept = {}
        for name, value in new.items():
            if value is old[name]:
                kept[name] = value
            else:
                kept[name] = value.detach() if fine is None else torch.where(fine, value.detach(), old[name])
        return after.with_named(kept)
