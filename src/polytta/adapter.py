"""The object a user holds: an nn.Module that predicts and adapts."""

import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polytta import export, persist
from polytta.advance import Advance, Advancer, State, group
from polytta.aggregate import aggregate, evidence
from polytta.config import Config
from polytta.errors import ConfigError, ModelError, PolyttaWarning, StateError
from polytta.gpu.capture import CapturedSteps
from polytta.guard import Screened, Verdict, admit, screen
from polytta.network.copies import share_structure
from polytta.network.probe import Findings, check_output, model_errors_as_input_errors, probe
from polytta.optim import PopulationOptimizer
from polytta.optim.rule import family
from polytta.particles import FoldedEngine, Layout, choose_engine
from polytta.report import Entry, Ledger, StepReport, Totals
from polytta.roles.noise import keys
from polytta.step import Rules, Step, finite_rows

_IDENTICAL_AFTER = 5
# Looking waits for the GPU, so there it is done now and then.
_LOOKS_EVERY = 64


class Adapted(nn.Module):
    """K particles over a frozen model. Made by ``polytta.adapt``.

    ``forward`` predicts and then adapts, whatever ``train()``, ``eval()``, ``no_grad`` or ``inference_mode`` say; the
    network itself always runs in evaluation mode. ``state_dict`` holds the adaptation state, not the frozen weights.
    """

    source_network: nn.Module
    theta: Tensor
    learning_rates: Tensor
    step: Tensor
    classes: Tensor

    def __init__(self, model: nn.Module, config: Config) -> None:
        super().__init__()
        # Kept out of the module registry: state_dict must not hold the frozen weights.
        self.__dict__["source_network"] = share_structure(model)
        self.config = config
        self._ledger = self._new_ledger()
        self._steps = 0
        self._begun = False
        self._advancer: Advancer | None = None
        self._captured: CapturedSteps | None = None
        self._findings: Findings | None = None
        self._optimizer = PopulationOptimizer(config.optimizers * (config.populations or 1))
        self._warned_identical = False
        with torch.inference_mode(False):
            self._refresh_layout()
            theta = self.source.expand(config.rows, -1).clone()
            self.register_buffer("theta", theta)
            self.register_buffer("learning_rates", self._rates())
            self.register_buffer("step", torch.zeros((), dtype=torch.int64, device=theta.device))
            self.register_buffer("classes", torch.tensor(config.num_classes or 0))
            self._register("optimizer", self._optimizer.init(theta))
        if config.num_classes:
            self._begin_method(config.num_classes)

    # ------------------------------------------------------------------ what a user calls

    def forward(self, x: Tensor) -> Tensor:
        """Predicts, then adapts.

        Args:
            x: (B, ...) floating-point images, preprocessed as the model expects; (G, B, ...) with populations.

        Returns:
            (B, C) log-probabilities of the population *before* it learnt from this batch; (G, B, C) with populations.
        """
        return self._step(x)

    def adapt(self, x: Tensor) -> StepReport:
        """Learns from a batch; the report says what happened."""
        self._step(x)
        report = self.last
        assert report is not None
        return report

    @property
    def last(self) -> StepReport | None:
        """What the last step did; None before the first."""
        return self._ledger.last

    @property
    def last_logits(self) -> Tensor | None:
        """(G·K, B', C) of the usable images of the last step; unlike ``last`` it does not wait for the device."""
        return self._ledger.last_logits

    @property
    def totals(self) -> Totals:
        """Sums over all steps since the start or the last reset."""
        return self._ledger.totals

    @totals.setter
    def totals(self, totals: Totals) -> None:
        self._ledger.totals = totals

    def predict(self, x: Tensor) -> Tensor:
        """Log-probabilities of the population as it is, in the shape ``forward`` returns; no state changes."""
        answer = aggregate(self.config.aggregate, self._logits(x), self.evidence)
        return answer[0] if self.config.populations is None else answer

    def particles_log_probs(self, x: Tensor) -> Tensor:
        """(K, B, C) log-probabilities of each particle, (G, K, B, C) with populations; no state changes."""
        log_probs = self._logits(x).log_softmax(dim=-1)
        return log_probs[0] if self.config.populations is None else log_probs

    def reset(self) -> None:
        """Returns to the source model and forgets everything learnt."""
        with torch.inference_mode(False):
            self._buffers["theta"] = self.source.expand(self.config.rows, -1).clone()
            self._register("optimizer", self._optimizer.init(self.theta))
            self._buffers["step"] = torch.zeros_like(self.step)
            if self.config.num_classes:
                self._begin_method(self.config.num_classes)
        self._steps = 0
        self._ledger = self._new_ledger()
        self._warned_identical = False

    def particle(self, index: int) -> dict[str, Tensor]:
        """Adapted parameters of one particle of G·K, named as in the source model."""
        return {name: value.clone() for name, value in self.layout.named(self.theta[index]).items()}

    @property
    def evidence(self) -> dict[str, Tensor]:
        """What the particles' answers so far say about them (``polytta.aggregate.evidence``)."""
        return group(self._tensors(), "evidence")

    def best(self) -> int:
        """The particle with the most label-free evidence."""
        export.require_one_population(self, "best")
        return int(evidence.scores(self.evidence).argmax()) if self.evidence else 0

    def merge(self) -> dict[str, Tensor]:
        """The particles' mean parameters (a soup), named as in the source model."""
        export.require_one_population(self, "merge")
        return self.layout.named(self.theta.mean(dim=0))

    def freeze(self, which: export.Which = "merged") -> nn.Module:
        """A plain module that answers as this adapter would and never changes: see ``polytta.export.freeze``."""
        return export.freeze(self, which)

    def save(self, path: str | Path) -> None:
        """Writes the adaptation state to one safetensors file, atomically."""
        persist.save(self, Path(path))

    # ------------------------------------------------------------------ one step

    def _step(self, x: Tensor) -> Tensor:
        # Events, streams, graphs and Triton use the current device, which need not be the model's.
        with torch.inference_mode(False), torch.enable_grad(), torch.cuda.device_of(self.theta):
            admitted = self._admitted(x)
            if self._captured is not None and self._begun:
                verdict = Verdict(admitted)
                made = self._captured(self._tensors(), self._by_population(admitted))
                if verdict.wait():
                    return self._finish(Screened(admitted, None), made)
            batch = screen(admitted, self.config.populations)
            usable = batch.x if batch.usable is None else batch.x[batch.usable]
            if not usable.shape[0]:
                return self._finish(batch, None)
            advancer = self._ready(usable)
            self._begin_learning(advancer.engine.findings, self._by_population(usable).shape[1])
            return self._finish(batch, advancer(self._tensors(), self._by_population(usable)))

    def _finish(self, batch: Screened, made: Advance | None) -> Tensor:
        """Takes over the new state, writes the step down, and answers."""
        if made is None:
            self._buffers["step"] = self.step + 1
        else:
            self._buffers.update(made.state)
        self._steps += 1
        self._note(batch, made)
        return self._answer(batch, made)

    def _note(self, batch: Screened, made: Advance | None) -> None:
        # A replayed graph writes the next step over its parameters.
        theta = self.theta.clone() if self._captured is not None else self.theta
        samples = batch.x.shape[0] // (self.config.populations or 1)
        numbers, logits = (None, None) if made is None else (made.numbers, made.logits)
        measures = {} if made is None else made.measures
        self._ledger.note(Entry(self._steps, samples, batch.rejected, numbers, logits, theta, self.source, measures))
        if not self._warned_identical and self.config.particles > 1 and self._steps >= _IDENTICAL_AFTER:
            self._warn_if_identical()

    def _answer(self, batch: Screened, made: Advance | None) -> Tensor:
        """(B, C) log-probabilities: the population's for usable images, the source model's for the others."""
        if batch.usable is None:
            assert made is not None
            return made.answer[0] if self.config.populations is None else made.answer
        own = self._source_logits(batch.x[~batch.usable]).log_softmax(dim=-1)
        answer = own.new_empty(batch.x.shape[0], own.shape[1])
        answer[~batch.usable] = own
        if made is not None:
            answer[batch.usable] = made.answer[0].to(own.dtype)
        return answer

    # ------------------------------------------------------------------ predictions without learning

    def _logits(self, x: Tensor) -> Tensor:
        """(G, K, B, C) logits of the particles, the source model's for unusable images."""
        with torch.inference_mode(False), torch.no_grad(), torch.cuda.device_of(self.theta):
            batch = screen(self._admitted(x), self.config.populations)
            usable = batch.x if batch.usable is None else batch.x[batch.usable]
            populations = self.config.populations or 1
            if usable.shape[0]:
                ready = self._ready(usable)
                grouped = self._by_population(usable)
                work = Step(ready.engine, ready.rules, self.theta, self.source, grouped, self.step, learns=False)
                logits = work.prediction(work.passes()).unflatten(0, (populations, -1))
                if batch.usable is None:
                    return logits
            source = self._source_logits(batch.x)
            every = source.expand(1, self.config.particles, *source.shape).clone()
            if usable.shape[0]:
                every[:, :, batch.usable] = logits.to(every.dtype)
            return every

    @torch.no_grad()
    def _source_logits(self, x: Tensor) -> Tensor:
        with model_errors_as_input_errors(x):
            logits = check_output(self.source_network(x), x.shape[0])
        return finite_rows(logits if logits.dtype == torch.float64 else logits.float())

    # ------------------------------------------------------------------ getting ready

    def _admitted(self, x: object) -> Tensor:
        """The batch, its populations one after the other."""
        reference = next(self.source_network.parameters())
        return admit(x, reference.dtype, reference.device, self.config.populations)

    def _by_population(self, x: Tensor) -> Tensor:
        """(G·B, ...) to (G, B, ...)."""
        return x.unflatten(0, (self.config.populations or 1, -1))

    def _ready(self, x: Tensor) -> Advancer:
        """Engine and rules, made at the first batch, when the shapes are known."""
        if self._advancer is None:
            engine_class = choose_engine(self.config.engine, self.theta.device)
            findings = probe(self.source_network, x[:1], self.config.layers, everything=engine_class.replaces_all)
            known = int(self.classes)
            if known and known != findings.num_classes:
                raise ModelError(f"num_classes: got {known}, but the model has {findings.num_classes} outputs.")
            c = self.config
            engine = engine_class(
                self.source_network, self.layout, findings, c.statistics, c.precision, c.particles_at_once
            )
            self._findings = findings
            self._advancer = Advancer(engine, self._rules, self._optimizer, self.source, self.config.aggregate)
            self._captured = CapturedSteps(replace(self._advancer, guarded=True)) if engine.captures else None
        return self._advancer

    def _begin_learning(self, findings: Findings, batch: int) -> None:
        """What only the first batch to learn from can tell: the method's state and the learning rates."""
        if not int(self.classes):
            self._begin_method(findings.num_classes)
        if bool(self.learning_rates.isnan().any()):
            kind = family([findings.sites[layer].recipe for layer in self.config.layers])
            self.config = self.config.with_reference_rates(kind, batch)
            self._buffers["learning_rates"] = self._rates()
        if self.config.num_classes is None:
            self.config = replace(self.config, num_classes=findings.num_classes)
        self._begun = True

    def _begin_method(self, num_classes: int) -> None:
        self._buffers["classes"] = torch.tensor(num_classes)
        start = self.config.method.init(_Beginning(self.config.rows, num_classes, self.theta, self.source))
        self._register("method", start)
        self._register("evidence", evidence.begin(self.config.rows, num_classes, self.theta))

    def folded_engine(self) -> FoldedEngine:
        """A fresh folded engine over the same network, for a frozen ensemble."""
        if self._findings is None:
            raise ConfigError("freeze: the adapter has not seen a batch yet; allowed after the first prediction.")
        return FoldedEngine(self.source_network, self.layout, self._findings, self.config.statistics)

    def _rates(self) -> Tensor:
        """Learning rates of all particles; not a number until they are known."""
        rates = self.config.learning_rates or (torch.nan,) * self.config.rows
        return torch.tensor(rates, dtype=torch.float64, device=self.theta.device)

    @property
    def _rules(self) -> Rules:
        c = self.config
        noise_keys = keys(c.noise_owners, len(c.views.transforms), self.theta.device)
        return Rules(c.method, c.diversity, c.views, c.lenses, c.objective, c.populations or 1, noise_keys)

    def _new_ledger(self) -> Ledger:
        c = self.config
        return Ledger(c.method.filters, c.rows, c.populations or 1, c.diversity)

    def _warn_if_identical(self) -> None:
        looks = self._steps % _LOOKS_EVERY == 0 or not self.theta.is_cuda or self._steps == _IDENTICAL_AFTER
        if not looks or min(self.totals.stepped) < _IDENTICAL_AFTER:
            return
        drift = float((self.theta - self.source).norm(dim=1).max())
        if drift == 0:  # all of them were just reset
            return
        self._warned_identical = True
        grouped = self._by_population(self.theta)
        if float((grouped - grouped[:, :1]).norm(dim=2).max()) <= 1e-5 * drift:
            warnings.warn(
                f"all {self.config.particles} particles are still the same after {self.totals.steps} steps, so they "
                "are worth one; let lr_spread, the optimizers, or the random numbers differ.",
                PolyttaWarning,
                stacklevel=4,
            )

    # ------------------------------------------------------------------ state

    def _tensors(self) -> State:
        """What a step reads and writes."""
        return {name: b for name, b in self._buffers.items() if b is not None and name != "classes"}

    def _register(self, group: str, values: Mapping[str, Tensor]) -> None:
        for name, value in values.items():
            self._buffers[f"{group}_{name}"] = value.detach()

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self._captured is not None:  # a replayed graph writes the next step over its state
            destination.update({f"{prefix}{name}": destination[f"{prefix}{name}"].clone() for name in self._buffers})

    def _refresh_layout(self) -> None:
        network: nn.Module = self.source_network
        self.layout = Layout.of(network, self.config.layers)
        self.source = self.layout.flatten({s.name: network.get_parameter(s.name) for s in self.layout.slots})

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Takes over a state, after checking that all of it fits; refused states change nothing."""
        if not strict:
            raise StateError("strict: got False; allowed is True, since half a state is none.")
        classes = persist.check_classes(state_dict, None if self._findings is None else self._findings.num_classes)
        expected = self._expected_state(classes)
        persist.check_fits(state_dict, expected)
        with torch.inference_mode(False):
            for name in [name for name in self._buffers if name not in expected]:
                del self._buffers[name]
            for name, buffer in expected.items():
                self._buffers[name] = state_dict[name].detach().to(buffer.device, copy=True)
        self._steps, self._begun = int(self.step), False
        self._ledger = self._new_ledger()
        rates = None if bool(self.learning_rates.isnan().any()) else tuple(self.learning_rates.tolist())
        self.config = replace(self.config, num_classes=classes or None, learning_rates=rates)
        return nn.modules.module._IncompatibleKeys([], [])

    def _expected_state(self, classes: int) -> dict[str, Tensor]:
        """Tensors of the names and shapes that a state of that many classes has; 0 is one before the first batch."""
        trial = copy.copy(self)
        begun = ("method_", "evidence_")
        trial._buffers = {name: b for name, b in self._buffers.items() if not name.startswith(begun)}
        if classes:
            trial._begin_method(classes)
        return {name: b for name, b in trial._buffers.items() if b is not None}

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> "Adapted":
        """``to``, ``cuda``, ``double``: moves the network and the state; particles never drop below float32."""
        with torch.inference_mode(False):
            self.source_network._apply(fn)
            for name, buffer in self._buffers.items():
                if buffer is None:
                    continue
                moved = fn(buffer)
                if moved.dtype in (torch.float16, torch.bfloat16):
                    moved = buffer.to(moved.device, torch.float32)
                self._buffers[name] = buffer.to(moved.device) if name == "learning_rates" else moved
            self._refresh_layout()
        self._advancer = self._captured = None
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Adapted":
        twin = self.__class__.__new__(self.__class__)
        memo[id(self)] = twin
        apart = ("_advancer", "_captured", "_ledger", "source_network")
        with torch.inference_mode(False):
            twin.__dict__.update(copy.deepcopy({k: v for k, v in self.__dict__.items() if k not in apart}, memo))
            twin.__dict__.update(_advancer=None, _captured=None, _ledger=self._ledger.copy())
            twin.__dict__["source_network"] = share_structure(self.source_network)
        return twin


class _Beginning:
    """The little of a step's context that exists before the first batch."""

    def __init__(self, particles: int, num_classes: int, theta: Tensor, source: Tensor) -> None:
        self.particles, self.num_classes, self.theta, self.source = particles, num_classes, theta, source
