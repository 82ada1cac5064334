"""One whole step as a pure function: a state and a batch in, an answer and the next state out.

Nothing here reads a value back to the host (given an engine of static shapes), so that a step can also be recorded
once and replayed. Several populations may share a step: their particles are more rows of the same passes, and never
meet. What a batch does to the particles is in ``squad``: those that learn by the same method do so together, and those
that only predict cost no more than that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from polytta.aggregate import Aggregate, evidence
from polytta.engine.guarding import Guarding
from polytta.engine.squad import Outcome, Squad
from polytta.engine.state import PopulationState
from polytta.errors import ConfigError
from polytta.guard import all_in_range, warned
from polytta.particles import Engine
from polytta.views import fineness


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
        squads: the particles, by how they learn.
        aggregate: how they answer together.
        anchors: (G·K,) for each row the one that looks alike and changes nothing, or itself.
        twins: (G·K,) for each row the one that is as it was before it learnt, or itself.
        filters: names of what the methods select by.
        guard: looks at the particles after the step; None without one.
        guarded: leave the state as it is when the batch has values nothing should be learnt from; for steps that start
            before anybody has looked at the batch.
    """

    engine: Engine
    squads: Sequence[Squad]
    aggregate: Aggregate
    anchors: Tensor
    twins: Tensor
    filters: Sequence[str]
    guard: Guarding | None = None
    guarded: bool = False

    def __call__(self, state: PopulationState, x: Tensor) -> StepResult:
        """Predicts on ``x`` (G, B, ...) and learns from it."""
        slowing = self.aggregate.slowing(self._evidence(state), x.shape[0]) if state.pace else None
        now = state if slowing is None else replace(state, learning_rates=state.learning_rates * slowing)
        outcomes = [squad.learn(self.engine, squad.share_of(now), x) for squad in self.squads]
        after = self._joined(state, outcomes)
        logits, told = (self._scattered([getattr(one, name) for one in outcomes]) for name in ("logits", "answer"))

        # Aggregate.
        detail = detail_of(x, self.aggregate)
        by_population = told.unflatten(0, (x.shape[0], -1))
        known = self._evidence(state)
        after = replace(after, evidence=evidence.observe(known, logits, detail))
        # A prediction knows only what would be answered, and must come out the same.
        uncorrected = all(one.answer is one.logits for one in outcomes)
        seen = after.evidence if uncorrected else evidence.observe(known, told, detail)
        answer, changed = self.aggregate.answer(by_population, evidence.with_batch(known, seen), detail)
        after = replace(after, evidence={**after.evidence, **changed})

        # Start over.
        restarted = torch.zeros(logits.shape[0], dtype=torch.bool, device=logits.device)
        restart = self.aggregate.restarts(self._evidence(after), x.shape[0])
        if restart is not None:
            restarted = restart.rows
            after = _restarted(after, restart.rows, restart.donors)

        changed = self.aggregate.after_step(self._evidence(after), x.shape[1], after.step, x.shape[0])
        after = replace(after, evidence={**after.evidence, **changed})

        # Guard.
        after = replace(after, guard=state.guard)
        nothing = torch.zeros_like(restarted)
        verdict, actions, broken = nothing, nothing, nothing
        if self.guard is not None:
            after, found = self.guard(state, after, logits, None if restart is None else restart.rows)
            gradient = self._scattered([one.gradient for one in outcomes])
            verdict, actions, broken = warned(found.verdict, gradient), found.actions, found.broken

        # Record.
        numbers = self._packed(outcomes, (restarted, verdict, actions, broken))
        measures = {name: value for outcome in outcomes for name, value in outcome.measures.items()}
        return StepResult(answer, told, numbers, measures, self._settled(state, after, x))

    def predict(self, state: PopulationState, x: Tensor) -> Tensor:
        """(G·K, B, C) logits that the particles as they are would answer from."""
        return self._scattered([squad.predict(self.engine, squad.share_of(state), x) for squad in self.squads])

    def _evidence(self, state: PopulationState) -> Mapping[str, Tensor]:
        return evidence.with_anchors(state.evidence, self.anchors, self.twins)

    def _scattered(self, parts: Sequence[Tensor]) -> Tensor:
        """Rows of the squads, in the order of the population."""
        if self.squads[0].rows is None:
            return parts[0]
        whole = parts[0].new_empty(self.anchors.shape[0], *parts[0].shape[1:])
        for squad, part in zip(self.squads, parts, strict=True):
            assert squad.rows is not None
            whole = whole.index_copy(0, squad.rows, part.to(whole.dtype))
        return whole

    def _joined(self, state: PopulationState, outcomes: Sequence[Outcome]) -> PopulationState:
        """The population after the step."""
        first = outcomes[0]
        if self.squads[0].rows is None:
            return PopulationState(
                first.theta, state.learning_rates, state.step + 1, first.optimizer, first.pace, first.method
            )
        method: dict[str, Tensor] = dict(state.method)
        for squad, outcome in zip(self.squads, outcomes, strict=True):
            assert squad.rows is not None
            for name, value in outcome.method.items() if squad.learns else ():
                key = squad.parts.method_prefix + name
                before = method[key]
                if before.shape[1:] != value.shape[1:]:  # a window, whose images the first batch has brought
                    before = value.new_zeros(before.shape[0], *value.shape[1:])
                method[key] = before.index_copy(0, squad.rows, value)
        return PopulationState(
            self._scattered([one.theta for one in outcomes]),
            state.learning_rates,
            state.step + 1,
            {name: self._scattered([one.optimizer[name] for one in outcomes]) for name in state.optimizer},
            {name: self._scattered([one.pace[name] for one in outcomes]) for name in state.pace},
            method,
        )

    def _packed(self, outcomes: Sequence[Outcome], more: Sequence[Tensor]) -> Tensor:
        """All numbers of a step as one float64 vector, in the order ``polytta.report.StepEntry`` names."""
        names = ("losses", "moved", "resets", "forward", "backward", "selected", "gradient")
        parts = [self._scattered([getattr(one, name) for one in outcomes]).to(torch.float64) for name in names]
        parts.extend(one.to(torch.float64) for one in more)
        if self.filters:
            counts = parts[0].new_zeros(len(self.filters), parts[0].shape[0])
            for squad, outcome in zip(self.squads, outcomes, strict=True):
                if outcome.counts is None:
                    continue
                rows = slice(None) if squad.rows is None else squad.rows
                for name, count in zip(squad.parts.method.filters, outcome.counts, strict=True):
                    counts[self.filters.index(name), rows] = count.to(torch.float64)
            parts.append(counts.flatten())
        return torch.cat(parts)

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


def detail_of(x: Tensor, aggregate: Aggregate) -> Tensor:
    """(G, B) how fine the detail of images (G, B, ...) is, 0 where nobody asks."""
    if not aggregate.by_fineness:
        return torch.zeros(x.shape[:2], device=x.device)
    return fineness(x.flatten(0, 1)).unflatten(0, x.shape[:2])


def _restarted(state: PopulationState, rows: Tensor, donors: Tensor) -> PopulationState:
    """The marked rows (R,) go on from their donors, with fresh momentum and at half their rate."""

    def taken(values: Tensor) -> Tensor:
        if values.dim() == 0:
            return values
        return torch.where(rows.reshape(-1, *[1] * (values.dim() - 1)), values[donors], values)

    return replace(
        state,
        theta=taken(state.theta),
        learning_rates=torch.where(rows, state.learning_rates / 2, state.learning_rates),
        optimizer={
            name: torch.where(rows.reshape(-1, *[1] * (value.dim() - 1)), torch.zeros_like(value), value)
            for name, value in state.optimizer.items()
        },
        method={name: taken(value) for name, value in state.method.items()},
        evidence={name: taken(value) for name, value in state.evidence.items()},
    )
