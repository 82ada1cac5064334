"""A population on its way through a stream: takes batches in, keeps the state, writes down what happened."""

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor, nn

from polytta.aggregate import evidence
from polytta.engine.making import engine_with_stored, made_engine, made_guarding, made_squads, told_hypotheses
from polytta.engine.state import PopulationState
from polytta.engine.step import Step, StepResult, detail_of
from polytta.engine.stream_start import StreamStart
from polytta.engine.watch import Watch
from polytta.errors import ModelError
from polytta.guard import IdenticalParticles, Screened, admit, screen
from polytta.guard import begin as begin_guard
from polytta.methods.text_targets import require_text
from polytta.network.copies import require_finite, share_structure, version
from polytta.network.layout import Layout
from polytta.optim import PopulationOptimizer, pace
from polytta.particles import Engine, FoldedEngine, choose_engine
from polytta.particles.outputs import check_output, finite_rows, model_errors_as_input_errors
from polytta.particles.probe import Findings
from polytta.report import Hypothesis, Ledger, StepEntry
from polytta.settings import Config
from polytta.settings.settings import Settings
from polytta.system.turn import Turn

Recorded = Callable[[PopulationState, Tensor], StepResult | None]
"""A step that is replayed; None when the batch turned out to hold values nothing should be learnt from."""


_STEPS_KEPT = 3


class Session:
    """Everything an adapter has.

    Args:
        model: the source model; never changed.
        config: what to do.
    """

    def __init__(self, model: nn.Module, config: Config) -> None:
        self.config = config
        self.populations, self.particles = config.populations, config.particles
        self._grouped = config.settings.populations is not None
        self._turn = Turn()
        for method in config.methods:
            require_text(model, method)
        require_finite(model)
        self.network = share_structure(model)
        self.optimizer = PopulationOptimizer(config.optimizers * config.populations)
        self.findings: Findings | None = None
        self._locate_parameters()
        choose_engine(config.settings.engine, self.source.device)
        with torch.inference_mode(False):
            self.begin(config.settings.num_classes or 0)

    def _locate_parameters(self) -> None:
        """Reads off where the adapted parameters lie and what they are; steps made before are of other tensors."""
        self.layout = Layout.of(self.network, self.config.layers)
        parameters = {slot.name: self.network.get_parameter(slot.name) for slot in self.layout.slots}
        with torch.inference_mode(False):
            self.source = self.layout.flatten(parameters)
        self.anchors = self.rows(self.config.anchors), self.rows(self.config.twins)
        self._weights = tuple(self.network.parameters())
        self._version = version(self._weights)
        self._engines: dict[frozenset[int], Engine] = {}
        self._steps: dict[tuple[frozenset[int], frozenset[int]], tuple[Step, Recorded | None]] = {}
        self.watch = Watch(self.config, self.network, self.source, self.anchors[1])

    # ------------------------------------------------------------------ the state

    def begin(self, num_classes: int) -> None:
        """Starts from the source model."""
        self.state = self._first_state(num_classes)
        self.rates_origin = (
            "reference rule, at the first batch" if self.config.rates is None else self.config.rates.origin
        )
        self._restart_records()

    def resume(self, state: PopulationState) -> None:
        """Goes on from a state."""
        self.state = state
        self._restart_records()

    def _restart_records(self) -> None:
        config = self.config
        self.steps = int(self.state.step)
        audit = self.ledger.events.audit if hasattr(self, "ledger") else None  # type: ignore[has-type]
        self.ledger = Ledger(config.filters, config.rows, config.populations, config.diversity)
        self.ledger.events.audit = audit
        self.watch.resume(self.state)
        self._identical = IdenticalParticles(config.particles)
        self._knows_stream = False
        self.asleep: frozenset[int] = frozenset()
        self._looked = -1

    def _first_state(self, num_classes: int) -> PopulationState:
        theta = self.source.expand(self.config.rows, -1).clone()
        known = (torch.nan,) * self.config.rows if self.config.rates is None else self.config.rates.values
        rates = torch.tensor(known, dtype=torch.float64, device=theta.device)
        step = torch.zeros((), dtype=torch.int64, device=theta.device)
        relative = self.config.rates is not None and self.config.rates.relative
        state = PopulationState(theta, rates, step, self.optimizer.init(theta), pace.begin(theta) if relative else {})
        return self._with_classes(state, num_classes) if num_classes else state

    def _with_classes(self, state: PopulationState, num_classes: int) -> PopulationState:
        config = self.config
        start = StreamStart(config.rows, num_classes, state.theta, self.source, self.network)
        memory = {
            config.method_prefix(method) + name: value.detach()
            for _, method, learns in config.squads()
            for name, value in (method.init(start).items() if learns else ())
        }
        begun = evidence.begin(config.rows, num_classes, state.theta, by_fineness=config.aggregate.by_fineness)
        policy = self.watch.policy
        guard = {} if policy is None else begin_guard(policy, state.theta, num_classes)
        return replace(state, method=memory, evidence=begun, guard=guard)

    def expected_state(self, num_classes: int) -> PopulationState:
        """A state of the names and shapes that one of that many classes has; 0 is one before the first batch."""
        return self._first_state(num_classes)

    def reset(self) -> None:
        """Returns to the source model and forgets everything learnt, learning rates that a stream decided included."""
        with torch.inference_mode(False):
            self.begin(self.state.num_classes)

    @property
    def settings(self) -> Settings:
        """All options as they stand, with what the first batch has decided."""
        state = self.state
        settings = replace(self.config.settings, num_classes=state.num_classes or None)
        if not state.has_rates:
            return settings
        rates = tuple(state.learning_rates.tolist())
        return replace(settings, pace=rates) if state.pace else replace(settings, lr=rates)

    # ------------------------------------------------------------------ a batch

    def learn(self, x: object) -> Tensor:
        """Predicts on a batch and learns from it; (B, C) log-probabilities, (G, B, C) with populations."""
        # Events, streams, graphs and Triton use the current device, which need not be the model's.
        with self._turn, torch.inference_mode(False), torch.enable_grad(), torch.cuda.device_of(self.source):
            admitted = self._admitted(x)
            self._wake_and_sleep()
            if self._recorded is not None and self._knows_stream:
                result = self._replayed(self._by_population(admitted))
                if result is not None:
                    return self._finish(Screened(admitted), result)
            batch = screen(admitted, self._grouped)
            images = batch.good
            if not images.shape[0]:
                return self._finish(batch, None)
            grouped = self._by_population(images)
            sides = self.watch.looked(grouped, self.steps)
            step = self._ready(images, sides)
            begun, origin = self._begun(self.state, step.engine.findings, grouped.shape[1])
            told = self.watch.source_answers(step, begun, grouped, self.steps)
            result = self.watch.compared(step(begun, grouped), told)
            # Only now: a batch that was refused decides nothing.
            self._knows_stream, self.rates_origin = True, origin
            return self._finish(batch, replace(result, state=self.watch.marked(result.state, sides)))

    def _replayed(self, x: Tensor) -> StepResult | None:
        """What a recorded step makes of batches (G, B, ...)."""
        sides = self.watch.looked(x, self.steps)
        step, recorded = self._step_of(self._engine_for(sides), sides)
        assert recorded is not None
        told = self.watch.source_answers(step, self.state, x, self.steps)
        result = recorded(self.state, x)
        if result is None:
            return None
        result = self.watch.compared(result, told)
        return replace(result, state=self.watch.marked(result.state, sides))

    def predict(self, x: object) -> Tensor:
        """What ``learn`` would answer; no state changes. Learning may go on in another thread meanwhile."""
        with self._undisturbed():
            state = self.state
            if self.config.episodic:
                batch, result = self._rehearse(x, state)
                return self._answer(batch, None if result is None else result.answer)
            logits = self._particle_logits(x, state)
            with torch.inference_mode(False), torch.no_grad(), torch.cuda.device_of(self.source):
                batch = screen(self._admitted(x), self._grouped)
                if not batch.good.shape[0]:
                    return self._answer(batch, None)
                images = self._by_population(batch.good)
                logits = logits if batch.usable is None else logits[:, :, batch.usable]
                # Weighed as the step itself would, which has the evidence of nothing before the first batch.
                begun = state if self.findings is None else self._begun(state, self.findings, images.shape[1])[0]
                known = evidence.with_anchors(begun.evidence, *self.anchors)
                answer = self.config.aggregate.combine(logits, known, detail_of(images, self.config.aggregate))
                return self._answer(batch, answer)

    def particle_logits(self, x: object) -> Tensor:
        """(G, K, B, C) logits of the particles as they are, the source model's for unusable images."""
        with self._undisturbed():
            return self._particle_logits(x, self.state)

    def _undisturbed(self) -> AbstractContextManager[None]:
        """While inside, nobody writes over the state at hand: only recorded steps do, others make a new one."""
        return self._turn if self._recorded is not None else nullcontext()

    def _particle_logits(self, x: object, state: PopulationState) -> Tensor:
        episode = self._rehearse(x, state) if self.config.episodic else None
        with torch.inference_mode(False), torch.no_grad(), torch.cuda.device_of(self.source):
            batch = screen(self._admitted(x), self._grouped)
            images = batch.good
            if images.shape[0]:
                if episode is not None and episode[1] is not None:
                    logits = episode[1].logits
                else:
                    grouped = self._by_population(images)
                    step = self._ready(images, self.watch.looked(grouped, self.steps))
                    begun, _ = self._begun(state, step.engine.findings, grouped.shape[1])
                    logits = step.predict(begun, grouped)
                logits = logits.unflatten(0, (self.populations, -1))
                if batch.usable is None:
                    return logits
            source = self.source_logits(batch.x)
            every = source.expand(1, self.particles, *source.shape).clone()
            if images.shape[0]:
                every[:, :, batch.usable] = logits.to(every.dtype)
            return every

    def _rehearse(self, x: object, state: PopulationState) -> tuple[Screened, StepResult | None]:
        """An episode that nothing is kept of."""
        with torch.inference_mode(False), torch.enable_grad(), torch.cuda.device_of(self.source):
            batch = screen(self._admitted(x), self._grouped)
            images = batch.good
            if not images.shape[0]:
                return batch, None
            grouped = self._by_population(images)
            step = self._ready(images, self.watch.looked(grouped, self.steps))
            begun, _ = self._begun(state, step.engine.findings, grouped.shape[1])
            return batch, step(begun, grouped)

    @torch.no_grad()
    def source_logits(self, x: Tensor) -> Tensor:
        """(B, C) logits of the source model."""
        with model_errors_as_input_errors(x):
            output = self.network(x)
        return finite_rows(check_output(output, x.shape[0]))

    def _admitted(self, x: object) -> Tensor:
        """The batch, its populations one after the other."""
        if version(self._weights) != self._version:
            raise ModelError(
                "model: got weights that were changed since adapt, by training or loading; allowed are those it was "
                "given, or a new polytta.adapt(model)."
            )
        reference = next(self.network.parameters())
        return admit(x, reference.dtype, reference.device, self.populations if self._grouped else None)

    def _by_population(self, x: Tensor) -> Tensor:
        """(G·B, ...) to (G, B, ...)."""
        return x.unflatten(0, (self.populations, -1))

    def _finish(self, batch: Screened, result: StepResult | None) -> Tensor:
        """Takes over the new state, writes the step down, and answers."""
        # First of all: the source model may refuse what is left of the batch.
        answer = self._answer(batch, None if result is None else result.answer)
        self.state = replace(self.state, step=self.state.step + 1) if result is None else result.state
        self.steps += 1
        # A replayed step writes the next one over its parameters.
        theta = self.state.theta.clone() if self._recorded is not None else self.state.theta
        samples = batch.x.shape[0] // self.populations
        numbers, logits, measures = (
            (None, None, {}) if result is None else (result.numbers, result.logits, result.measures)
        )
        self.ledger.note(StepEntry(self.steps, samples, batch.rejected, numbers, logits, theta, self.source, measures))
        if self.steps >= self._identical.due and not self.ledger.totals.actions:
            # Those that the guard held back may well meet.
            taken = self.ledger.totals.stepped
            self._identical.look(self.steps, self._by_population(self.state.theta), self.source, taken)
        return answer

    def _answer(self, batch: Screened, told: Tensor | None) -> Tensor:
        """(B, C) log-probabilities: the population's for usable images, the source model's for the others."""
        if batch.usable is None:
            assert told is not None
            return told[0] if not self._grouped else told
        own = self.source_logits(batch.x[~batch.usable]).log_softmax(dim=-1)
        answer = own.new_empty(batch.x.shape[0], own.shape[1])
        answer[~batch.usable] = own
        if told is not None:
            answer[batch.usable] = told[0].to(own.dtype)
        return answer

    # ------------------------------------------------------------------ getting ready

    def _ready(self, x: Tensor, sides: Sequence[int]) -> Step:
        """The step; its engine is made at the first batch, when the shapes are known."""
        with self._turn:
            if not self._engines:
                first = made_engine(self, x)
                self.findings, self._engines[frozenset()] = first.findings, first
            return self._step_of(self._engine_for(sides), sides)[0]

    def _engine_for(self, sides: Sequence[int]) -> Engine:
        """The engine, with stored statistics for populations whose batches are of one class."""
        stored = _marked(sides)
        if stored not in self._engines:
            self._engines[stored] = engine_with_stored(self, self._engines[frozenset()], stored)
        return self._engines[stored]

    def _step_of(self, engine: Engine, sides: Sequence[int]) -> tuple[Step, Recorded | None]:
        """The step of those awake, and the same as it is replayed."""
        key = self.asleep, _marked(sides)
        if key not in self._steps:
            config = self.config
            guard = made_guarding(self, engine.findings.num_classes)
            step = Step(engine, made_squads(self), config.aggregate, *self.anchors, config.filters, guard)
            # Recordings take memory, and who slept long ago will hardly sleep alike again.
            while len(self._steps) >= _STEPS_KEPT:
                del self._steps[next(iter(self._steps))]
            self._steps[key] = (step, engine.recorder(replace(step, guarded=True)))
        return self._steps[key]

    @property
    def _recorded(self) -> Recorded | None:
        """The step as it is replayed; None before the first, or where steps are not."""
        if not self._engines:
            return None
        return self._step_of(self._engine_for(self.watch.sides), self.watch.sides)[1]

    def _wake_and_sleep(self) -> None:
        """Looks now and then at who sleeps: reading it waits for the device."""
        marks = self.state.evidence.get("asleep")
        due = self._looked < 0 or self.steps % evidence.SLEEP_EVERY == 0
        if marks is None or self._looked == self.steps or not due:
            return
        self._looked = self.steps
        everywhere = marks.unflatten(0, (self.populations, -1)).bool().all(dim=0).tolist()
        self.asleep = frozenset(number for number, rests in enumerate(everywhere) if rests)

    def rows(self, numbers: Sequence[int]) -> Tensor:
        """Rows of the particles of these numbers, population by population."""
        config = self.config
        rows = [config.particles * g + n for g in range(config.populations) for n in numbers]
        return torch.tensor(rows, device=self.source.device)

    def _begun(self, state: PopulationState, findings: Findings, batch: int) -> tuple[PopulationState, str]:
        """A state with what only a batch can tell, the method's memory and the learning rates, and their origin."""
        origin = self.rates_origin
        if self._knows_stream and state.num_classes:
            return state, origin
        if not state.num_classes:
            state = self._with_classes(state, findings.num_classes)
        if not state.has_rates:
            rates = self.config.reference_rates(findings.family(self.config.layers), batch)
            origin = rates.origin
            values = torch.tensor(rates.values, dtype=torch.float64, device=self.source.device)
            state = replace(state, learning_rates=values)
        return state, origin

    @property
    def learning_rates(self) -> Tensor:
        """(G·K,) one per particle, of paces those of a mean gradient; NaN until a batch has decided them."""
        rates, found = self.state.learning_rates, self.state.pace
        if not found:
            return rates
        # Losses of different methods have no common mean.
        typical = rates.clone()
        for numbers, _, _ in self.config.squads(self.asleep):
            rows = self.rows(numbers)
            own = {name: value[rows] for name, value in found.items()}
            typical[rows] = pace.typical(rates[rows], own, self.populations)
        return typical

    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """What is known of the particles of the one population."""
        return told_hypotheses(self)

    @property
    def recorded(self) -> bool:
        """Whether the state's tensors are written over by the next step."""
        return self._recorded is not None

    def folded_engine(self, findings: Findings) -> FoldedEngine:
        """A fresh folded engine over the same network, for a frozen ensemble."""
        return FoldedEngine(self.network, self.layout, findings, self.config.statistics)

    # ------------------------------------------------------------------ copies and moves

    def move(self, change: Callable[[Tensor], Tensor]) -> None:
        """Moves the network and the state to another device or precision."""
        with torch.inference_mode(False):
            self.network._apply(change)
            self.state = self.state.moved(change)
            self._locate_parameters()
            self.watch.resume(self.state)

    def __deepcopy__(self, memo: dict[int, object]) -> "Session":
        other = self.__class__.__new__(self.__class__)
        memo[id(self)] = other
        other.__dict__.update(self.__dict__)
        other._turn = Turn()
        with torch.inference_mode(False):
            other.network = share_structure(self.network)
            other.optimizer = PopulationOptimizer(self.config.optimizers * self.config.populations)
            other.state = self.state.changed(torch.clone)
            other.ledger = self.ledger.copy()
            other._identical = copy.deepcopy(self._identical)
            other._locate_parameters()
            other.watch.resume(other.state)
        return other

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        # How often a tensor was written to is not pickled.
        self._version = version(self._weights)


def _marked(sides: Sequence[int]) -> frozenset[int]:
    return frozenset(number for number, left in enumerate(sides) if left)
