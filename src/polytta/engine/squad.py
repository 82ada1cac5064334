"""The rows of a population that learn alike, and what one batch does to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from polytta.engine.context import BatchContext
from polytta.engine.parts import Parts
from polytta.engine.state import PopulationState
from polytta.guard import accepted, finite_rows_of, usable_direction
from polytta.optim.pace import paced
from polytta.particles import Engine
from polytta.roles import Lesson, Objective, Sight


@dataclass(frozen=True)
class Outcome:
    """What a batch did to some rows.

    Attributes:
        logits: (R, B, C) that evidence is taken from.
        answer: (R, B, C) logits that the answer is made from.
        theta: (R, P) after it.
        optimizer: the optimizers' buffers after it.
        pace: what paces found out.
        method: the method's state after it.
        losses: (R,).
        moved: (R,) whose parameters changed.
        resets: (R,) who returned to source.
        forward: (R,) images whose logits were needed.
        backward: (R,) images whose loss was differentiated.
        counts: (filters, R) samples left after each filter; None where nothing was selected.
        measures: what the diversifier found out.
    """

    logits: Tensor
    answer: Tensor
    theta: Tensor
    optimizer: Mapping[str, Tensor]
    pace: Mapping[str, Tensor]
    method: Mapping[str, Tensor]
    losses: Tensor
    moved: Tensor
    resets: Tensor
    forward: Tensor
    backward: Tensor
    counts: Tensor | None = None
    measures: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Squad:
    """Rows that learn by one method, or that only predict.

    Attributes:
        parts: method, diversifier, optimizer, views, lenses of these rows.
        rows: (R,) their numbers in the population; None means that they are all of it.
        learns: whether they learn.
    """

    parts: Parts
    rows: Tensor | None
    learns: bool

    def own(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Their rows of named tensors."""
        return dict(values) if self.rows is None else {name: value[self.rows] for name, value in values.items()}

    def share_of(self, state: PopulationState) -> PopulationState:
        """The state that is theirs."""
        if self.rows is None:
            return state
        return PopulationState(
            state.theta[self.rows],
            state.learning_rates[self.rows],
            state.step,
            self.own(state.optimizer),
            self.own(state.pace),
            {name: state.method[self.parts.method_prefix + name][self.rows] for name in self.parts.method_names},
        )

    def predict(self, engine: Engine, state: PopulationState, x: Tensor) -> Tensor:
        """(R, B, C) logits that their particles as they are would answer from; ``state`` is theirs."""
        with torch.no_grad():
            context = BatchContext(engine, self.parts, state.theta, x, state.step, self.rows, learns=False)
            return self._sight(context, state).answer

    def learn(self, engine: Engine, state: PopulationState, x: Tensor) -> Outcome:
        """Predicts on ``x`` (G, B, ...) and learns from it; ``state`` is theirs."""
        parts, source = self.parts, self.parts.source
        start = self._fresh(state) if parts.episodic else state

        # Predict.
        context = BatchContext(engine, parts, start.theta, x, state.step, self.rows, learns=self.learns)
        sight = self._sight(context, start)

        # Select, descend, diversify; a method may look at what came out and choose another lesson.
        lesson = parts.method.learn(context, sight.passes, start.method) if context.learns else Lesson()
        healthy = torch.ones(context.particles, dtype=torch.bool, device=x.device)
        losses = start.theta.new_zeros(context.particles)
        direction: Tensor | None = None
        measures: dict[str, Tensor] = {}
        while lesson.terms:
            learners = lesson.learners
            theta = lesson.terms[0].passes[0].theta
            direction, losses = torch.zeros_like(theta), torch.zeros_like(losses)
            found: dict[str, Tensor] = {}
            if engine.static_shapes or bool(learners.any()):
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
                    engine.rounding,
                    engine.weighted_sums,
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
        theta, slots, pace = start.theta, start.optimizer, state.pace
        memory: Mapping[str, Tensor] = {**start.method, **lesson.state}
        if direction is not None and lesson.terms:
            moves = learners if lesson.moves is None else lesson.moves
            rates = state.learning_rates
            if parts.relative:
                # Of the objective that the direction descends.
                own = losses / parts.divisor
                rates, pace = paced(rates, pace, direction, own, moves & healthy, parts.populations)
            stepped = parts.optimizer.step(theta, direction, slots, rates, source)
            theta, slots = accepted(moves & healthy, (theta, slots), stepped)
        if lesson.resets is not None:
            theta = torch.where(lesson.resets.unsqueeze(1), source, theta)
            slots = slots if lesson.keep_momentum else parts.optimizer.forget(slots, lesson.resets)
        if lesson.after_step is not None:
            wanted, changed = lesson.after_step(theta)
            theta, memory = finite_rows_of(wanted, theta), {**memory, **changed}
        if parts.episodic:
            sight = self._sight_after(engine, context, replace(start, theta=theta))

        moved = (theta != start.theta).any(dim=1)
        return Outcome(
            sight.logits,
            sight.answer,
            theta,
            slots,
            pace,
            memory,
            losses,
            moved,
            torch.zeros_like(moved) if lesson.resets is None else lesson.resets,
            context.forward_samples,
            context.backward_samples,
            torch.stack([term.selection.counts for term in lesson.terms]).sum(dim=0) if lesson.terms else None,
            measures,
        )

    def _sight(self, context: BatchContext, state: PopulationState) -> Sight:
        """What they see of the batch; those that never learn have no history to look at it by."""
        if self.learns:
            return context.sight(state.method)
        passes = context.passes()
        logits = context.prediction(passes)
        return Sight(passes, logits, self.parts.method.answer(logits))

    def _sight_after(self, engine: Engine, context: BatchContext, state: PopulationState) -> Sight:
        """What they see after the step, for methods that answer then."""
        with torch.no_grad():
            later = BatchContext(engine, self.parts, state.theta, context.x, context.index, self.rows, learns=False)
            sight = later.sight(state.method)
        context.forward_samples = context.forward_samples + later.forward_samples
        return sight

    def _fresh(self, state: PopulationState) -> PopulationState:
        """The particles of a stream that begins with this batch; what the method remembers, it remembers."""
        theta = self.parts.source.expand_as(state.theta)
        everyone = torch.ones(theta.shape[0], dtype=torch.bool, device=theta.device)
        return replace(state, theta=theta, optimizer=self.parts.optimizer.forget(state.optimizer, everyone))
