"""The rows of a population that learn alike, and what one batch does to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from polytta.engine.context import BatchContext
from polytta.engine.parts import Parts
from polytta.engine.state import PopulationState
from polytta.guard import accepted, clipped, finite_rows_of, length_of, usable_direction
from polytta.optim.pace import paced
from polytta.particles import Engine
from polytta.roles import Lesson, Objective, Pass, Sight


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
        selected: (R,) their share of the images that might have been.
        gradient: (R,) length of the last direction descended, before it was clipped; infinite where it was not finite.
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
    selected: Tensor
    gradient: Tensor
    counts: Tensor | None = None
    measures: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Walk:
    """Where some rows are on their way through what a batch teaches.

    Attributes:
        theta: (R, P).
        slots: the optimizers' buffers.
        pace: what paces found out.
        rates: (R,) learning rates or paces.
        memory: the method's state.
        losses: (R,) of the last step.
        gradient: (R,) length of its direction.
        resets: (R,) who returned to source; None while nobody was asked.
        counts: (filters, R) samples left after each filter, over all steps; None while nothing was selected.
        measures: what the diversifier found out at the last step.
    """

    theta: Tensor
    slots: Mapping[str, Tensor]
    pace: Mapping[str, Tensor]
    rates: Tensor
    memory: Mapping[str, Tensor]
    losses: Tensor
    gradient: Tensor
    resets: Tensor | None = None
    counts: Tensor | None = None
    measures: Mapping[str, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, state: PopulationState) -> "Walk":
        """Before the first step."""
        nothing = state.theta.new_zeros(state.theta.shape[0])
        known = (state.theta, state.optimizer, state.pace, state.learning_rates, state.method)
        return cls(*known, losses=nothing, gradient=nothing)


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
        parts = self.parts
        start = self._fresh(state) if parts.episodic else state

        # Predict.
        context = BatchContext(engine, parts, start.theta, x, state.step, self.rows, learns=self.learns)
        sight = self._sight(context, start)

        # Select, descend, diversify, move; a method may have more to say of the batch.
        walk = Walk.of(start)
        if context.learns:
            passes: Sequence[Pass] = sight.passes
            for number in range(parts.steps):
                if number:
                    theta = walk.theta.detach().requires_grad_(parts.method.descends)
                    passes = [context.forward(one, theta=theta, grad=parts.method.descends) for one in sight.passes]
                walk = self._followed(context, parts.method.learn(context, passes, walk.memory), walk)
        if parts.episodic:
            sight = self._sight_after(engine, context, replace(start, theta=walk.theta))

        moved = (walk.theta != start.theta).any(dim=1)
        return Outcome(
            sight.logits,
            sight.answer,
            walk.theta,
            walk.slots,
            walk.pace,
            walk.memory,
            walk.losses,
            moved,
            torch.zeros_like(moved) if walk.resets is None else walk.resets,
            context.forward_samples,
            context.backward_samples,
            context.selected_share,
            walk.gradient,
            walk.counts,
            walk.measures,
        )

    def _followed(self, context: BatchContext, lesson: Lesson, walk: "Walk") -> "Walk":
        """After a lesson and what follows from it."""
        while True:
            walk = self._taken(context, lesson, walk)
            if lesson.then is None:
                return walk
            lesson = lesson.then(walk.theta.detach().requires_grad_())

    def _taken(self, context: BatchContext, lesson: Lesson, walk: "Walk") -> "Walk":
        """After one step."""
        parts, engine, source = self.parts, context.engine, self.parts.source
        healthy = torch.ones(context.particles, dtype=torch.bool, device=walk.theta.device)
        losses, gradient, measures = walk.losses, walk.gradient, dict(walk.measures)
        direction: Tensor | None = None
        while lesson.terms:
            learners = lesson.learners
            theta = lesson.terms[0].passes[0].theta
            direction, losses = torch.zeros_like(theta), torch.zeros_like(losses)
            gradient = torch.zeros_like(gradient)
            found: dict[str, Tensor] = {}
            context.count_selected(lesson.terms)
            if engine.static_shapes or bool(learners.any()):
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
                gradient = length_of(direction, learners & ~finite)
                if parts.clip is not None:
                    direction = clipped(direction, parts.clip)
                losses, healthy = own.detach(), healthy & finite
                for name, value in found.items():
                    measures[name] = value.detach()
            if lesson.look_again is None:
                break
            lesson = lesson.look_again(direction)

        # Move.
        theta, slots, pace = walk.theta, walk.slots, walk.pace
        if lesson.forgets:
            slots = parts.optimizer.forget(slots, torch.ones_like(healthy))
        memory: Mapping[str, Tensor] = {**walk.memory, **lesson.state}
        if direction is not None and lesson.terms:
            moves = learners if lesson.moves is None else lesson.moves
            rates = walk.rates
            if parts.relative:
                # Of the objective that the direction descends.
                own = losses / parts.divisor
                rates, pace = paced(rates, pace, direction, own, moves & healthy, parts.populations)
            stepped = parts.optimizer.step(theta, direction, slots, rates, source)
            theta, slots = accepted(moves & healthy, (theta, slots), stepped)
        resets = walk.resets
        if lesson.resets is not None:
            theta = torch.where(lesson.resets.unsqueeze(1), source, theta)
            slots = slots if lesson.keep_momentum else parts.optimizer.forget(slots, lesson.resets)
            resets = lesson.resets if resets is None else resets | lesson.resets
        if lesson.after_step is not None:
            wanted, changed = lesson.after_step(theta)
            theta, memory = finite_rows_of(wanted, theta), {**memory, **changed}
        counts = walk.counts
        if lesson.terms:
            counts = torch.stack([term.selection.counts for term in lesson.terms]).sum(dim=0)
            counts = counts if walk.counts is None else walk.counts + counts
        return Walk(theta, slots, pace, walk.rates, memory, losses, gradient, resets, counts, measures)

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
