"""A population on its way through a stream: takes batches in, keeps the state, writes down what happened."""

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from polytta.aggregate import evidence
from polytta.engine import making, standing
from polytta.engine.intake import Intake, Make
from polytta.engine.state import PopulationState
from polytta.engine.step import Step, StepResult
from polytta.engine.watch import Watch
from polytta.errors import ModelError
from polytta.guard import IdenticalParticles, Screened, admit, screen
from polytta.methods.text_targets import require_text
from polytta.network.calling import Pick, call_plainly
from polytta.network.copies import require_finite, share_structure, version
from polytta.network.layout import Layout
from polytta.network.statistics import FewImages, Statistics
from polytta.optim import PopulationOptimizer
from polytta.particles import Engine, choose_engine
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
        given: what makes images of batches (``polytta.engine.intake``).
        output: which part of the model's output are its logits (``polytta.network.calling``).
    """

    def __init__(
        self, model: nn.Module, config: Config, given: Make | str | None = None, output: Pick | None = None
    ) -> None:
        self.config = config
        self.populations, self.particles = config.populations, config.particles
        self._grouped = config.settings.populations is not None
        self.turn = Turn()
        self.few_images = FewImages()
        for method in config.methods:
            require_text(model, method)
        require_finite(model)
        self.network = share_structure(model)
        self._intake = Intake(self.network, given)
        call_plainly(self.network, self._intake.keyword, output)
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
        self.anchors = making.anchor_rows(self)
        self._weights = tuple(self.network.parameters())
        self._version = version(self._weights)
        self._engine: Engine | None = None
        self._engines: dict[tuple[Statistics, ...], Engine] = {}
        self._steps: dict[tuple[frozenset[int], Engine], tuple[Step, Recorded | None]] = {}
        self.watch = Watch(self.config, self.network, self.source, self.anchors[1])

    # ------------------------------------------------------------------ the state

    def begin(self, num_classes: int) -> None:
        """Starts from the source model."""
        self.state = making.first_state(self, num_classes)
        rates = self.config.rates
        self.rates_origin = "reference rule, at the first batch" if rates is None else rates.origin
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

    def begun(self, state: PopulationState, findings: Findings, batch: int) -> tuple[PopulationState, str]:
        """A state with what only a batch can tell, the method's memory and the learning rates, and their origin."""
        if self._knows_stream and state.num_classes:
            return state, self.rates_origin
        return making.begun(self, state, findings, batch)

    def reset(self) -> None:
        """Returns to the source model and forgets everything learnt, learning rates that a stream decided included."""
        with torch.inference_mode(False):
            self.begin(self.state.num_classes)

    @property
    def settings(self) -> Settings:
        """All options as they stand, with what the first batch has decided."""
        return standing.settings(self.config, self.state)

    # ------------------------------------------------------------------ a batch

    def learn(self, x: object) -> Tensor:
        """Predicts on a batch and learns from it; (B, C) log-probabilities, (G, B, C) with populations."""
        # Events, streams, graphs and Triton use the current device, which need not be the model's.
        with self.turn, torch.inference_mode(False), torch.enable_grad(), torch.cuda.device_of(self.source):
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
            begun, origin = self.begun(self.state, step.engine.findings, len(admitted) // self.populations)
            told = self.watch.source_answers(step, begun, grouped, self.steps)
            result = self.watch.compared(step(begun, grouped), told)
            # Only now: a batch that was refused decides nothing.
            self._knows_stream, self.rates_origin = True, origin
            return self._finish(batch, replace(result, state=self.watch.marked(result.state, sides)))

    def _replayed(self, x: Tensor) -> StepResult | None:
        """What a recorded step makes of batches (G, B, ...)."""
        sides = self.watch.looked(x, self.steps)
        step, recorded = self._step_of(self._engine_for(x.flatten(0, 1), sides))
        assert recorded is not None
        told = self.watch.source_answers(step, self.state, x, self.steps)
        result = recorded(self.state, x)
        if result is None:
            return None
        result = self.watch.compared(result, told)
        return replace(result, state=self.watch.marked(result.state, sides))

    def predict(self, x: object) -> Tensor:
        """What ``learn`` would answer; no state changes. Learning may go on in another thread meanwhile."""
        if self.config.episodic:
            with self._undisturbed():
                batch, result = self._rehearse(x, self.state)
                return self._answer(batch, None if result is None else result.answer)
        answer = self.predict_with_particles(x)[0]
        return answer if self._grouped else answer[0]

    def predict_with_particles(self, x: object) -> tuple[Tensor, Tensor, Tensor]:
        """(G, B, C) answers, the particles' (G, K, B, C) logits, and (G, B, K) what each of them counts."""
        with self._undisturbed():
            state = self.state
            logits = self._particle_logits(x, state)
            with torch.inference_mode(False), torch.no_grad(), torch.cuda.device_of(self.source):
                batch = screen(self._admitted(x), self._grouped)
                told, weights = None, standing.equal_weights(logits)
                usable = slice(None) if batch.usable is None else batch.usable
                if batch.good.shape[0]:
                    images = self._by_population(batch.good)
                    # Weighed as the step itself would, which has the evidence of nothing before the first batch.
                    begun = state if self.findings is None else self.begun(state, self.findings, images.shape[1])[0]
                    known = evidence.with_anchors(begun.evidence, *self.anchors)
                    told, counted = standing.answered(self.config.aggregate, logits[:, :, usable], known, images)
                    weights[:, usable] = counted
                answer = self._answer(batch, told)
                return (answer if self._grouped else answer.unsqueeze(0)), logits, weights

    def particle_logits(self, x: object) -> Tensor:
        """(G, K, B, C) logits of the particles as they are, the source model's for unusable images."""
        with self._undisturbed():
            return self._particle_logits(x, self.state)

    def _undisturbed(self) -> AbstractContextManager[None]:
        """While inside, nobody writes over the state at hand: only recorded steps do, others make a new one."""
        return self.turn if self._recorded is not None else nullcontext()

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
                    begun, _ = self.begun(state, step.engine.findings, grouped.shape[1])
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
            begun, _ = self.begun(state, step.engine.findings, len(batch.x) // self.populations)
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
        return admit(
            self._intake.images(x), reference.dtype, reference.device, self.populations if self._grouped else None
        )

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
        if not self._grouped:
            self.ledger.weights.note(self.steps, self._standing, on_gpu=theta.is_cuda)
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

    def _ready(self, x: Tensor, sides: Sequence[int] | None = None) -> Step:
        """The step; its engine is made at the first batch, when the shapes are known."""
        with self.turn:
            return self._step_of(self._engine_for(x, self.watch.sides if sides is None else sides))[0]

    def _engine_for(self, x: Tensor, sides: Sequence[int]) -> Engine:
        """The engine for batches (G·B, ...), with stored statistics for populations whose batches are of one class."""
        kinds = making.statistics_for(self, x.shape[0] // self.populations, sides)
        if kinds not in self._engines:
            self._engines[kinds] = making.made_engine(self, x, kinds, next(iter(self._engines.values()), None))
        self._engine = self._engines[kinds]
        self.findings = self._engine.findings
        return self._engine

    def _step_of(self, engine: Engine) -> tuple[Step, Recorded | None]:
        """The step of those awake, and the same as it is replayed."""
        if (self.asleep, engine) not in self._steps:
            config = self.config
            guard = making.made_guarding(self, engine)
            step = Step(engine, making.made_squads(self), config.aggregate, *self.anchors, config.filters, guard)
            # Recordings take memory, and who slept long ago will hardly sleep alike again.
            while len(self._steps) >= _STEPS_KEPT:
                del self._steps[next(iter(self._steps))]
            self._steps[self.asleep, engine] = (step, engine.recorder(replace(step, guarded=True)))
        return self._steps[self.asleep, engine]

    @property
    def _recorded(self) -> Recorded | None:
        """The step as it is replayed; None before the first, or where steps are not."""
        return None if self._engine is None else self._step_of(self._engine)[1]

    def _wake_and_sleep(self) -> None:
        """Looks now and then at who sleeps: reading it waits for the device."""
        marks = self.state.evidence.get("asleep")
        due = self._looked < 0 or self.steps % evidence.SLEEP_EVERY == 0
        if marks is None or self._looked == self.steps or not due:
            return
        self._looked = self.steps
        self.asleep = standing.asleep(marks, self.populations)

    def rows(self, numbers: Sequence[int]) -> Tensor:
        """Rows of the particles of these numbers, population by population."""
        config = self.config
        rows = [config.particles * g + n for g in range(config.populations) for n in numbers]
        return torch.tensor(rows, device=self.source.device)

    @property
    def learning_rates(self) -> Tensor:
        """(G·K,) one per particle, of paces those of a mean gradient; NaN until a batch has decided them."""
        rows = [self.rows(numbers) for numbers, _, _ in self.config.squads(self.asleep)]
        return standing.learning_rates(self.state, rows, self.populations)

    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """What is known of the particles of the one population."""
        weights = self._standing() if self.steps else None
        return standing.hypotheses(self.config, weights, self.asleep, self.ledger.totals.restarts)

    def _standing(self) -> Tensor | None:
        """(K,) what each particle counts on images like those of late; None where all count alike."""
        return standing.weights(evidence.with_anchors(self.state.evidence, *self.anchors))

    @property
    def recorded(self) -> bool:
        """Whether the state's tensors are written over by the next step."""
        return self._recorded is not None

    @property
    def statistics(self) -> tuple[Statistics, ...]:
        """What BatchNorm layers have used of late, for each particle."""
        return self.config.statistics if self._engine is None else self._engine.statistics[: self.particles]

    # ------------------------------------------------------------------ copies and moves

    def move(self, change: Callable[[Tensor], Tensor]) -> None:
        """Moves the network and the state to another device or precision."""
        with torch.inference_mode(False):
            self.network._apply(change)
            self.state = self.state.moved(change)
            self._locate_parameters()
            self.watch.resume(self.state)

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process: engines are made anew there, since recorded graphs cannot travel."""
        return {**self.__dict__, "_engine": None, "_engines": {}, "_steps": {}}

    def __deepcopy__(self, memo: dict[int, object]) -> "Session":
        other = self.__class__.__new__(self.__class__)
        memo[id(self)] = other
        other.__dict__.update(self.__dict__)
        other.turn = Turn()
        with torch.inference_mode(False):
            other.network = share_structure(self.network)
            other._intake = self._intake.of(other.network)
            other.optimizer = PopulationOptimizer(self.config.optimizers * self.config.populations)
            other.state = self.state.changed(torch.clone)
            other.ledger = self.ledger.copy()
            other._identical = copy.deepcopy(self._identical)
            other._locate_parameters()
            other.watch.resume(other.state)
        return other

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # How often a tensor was written to is not pickled.
        self._version = version(self._weights)
