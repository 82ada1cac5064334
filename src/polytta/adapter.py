"""The object a user holds: an nn.Module that predicts and adapts."""

import copy
import logging
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polytta import describe, export, persist
from polytta.aggregate import evidence
from polytta.engine import Session
from polytta.engine.intake import Make
from polytta.errors import ConfigError, StateError
from polytta.network.calling import Pick
from polytta.network.layout import Layout
from polytta.particles import FoldedEngine
from polytta.report import Hypothesis, StepReport, Totals, Uncertainty
from polytta.settings import Config, Settings
from polytta.system.files import as_path

OnStep = Callable[[StepReport], object]
_SOURCE = "source_fingerprint"
_log = logging.getLogger("polytta")


class Adapted(nn.Module):
    """K particles over a frozen model. Made by ``polytta.adapt``.

    ``forward`` predicts and then adapts, whatever ``train()``, ``eval()``, ``no_grad`` or ``inference_mode`` say; the
    network itself always runs in evaluation mode. ``state_dict`` holds the adaptation state, not the frozen weights.

    Several threads may share one: steps take turns, in no promised order, and none is lost; ``predict`` goes on beside
    them, from the state between two steps (on a GPU it takes its turn too, since recorded steps work in place).
    """

    _session: Session

    def __init__(
        self, model: nn.Module, config: Config, given: Make | str | None = None, output: Pick | None = None
    ) -> None:
        super().__init__()
        # Not a submodule: state_dict must not hold the frozen weights.
        self.__dict__["_session"] = Session(model, config, given, output)
        self._callbacks: dict[int, OnStep] = {}
        self._fingerprint: Tensor | None = None
        # A pass may write to them, and a state belongs to the network as it was.
        self._first_buffers = persist.buffers_of(self.source_network)
        self._say_where()

    # ------------------------------------------------------------------ predicting and learning

    def forward(self, x: Any = None, **named: Any) -> Tensor:
        """Predicts, then adapts.

        Args:
            x: (B, ...) floating-point images, preprocessed as the model expects; (G, B, ...) with populations. Or a
                mapping that holds them, bytes if the model takes bytes, or whatever ``input=`` makes images of.
            named: instead of x, the same by name: ``adapted(pixel_values=images)``, ``adapted(**batch)``.

        Returns:
            (B, C) log-probabilities of the population *before* it learnt from this batch (after, for episodic methods);
            (G, B, C) with populations.
        """
        told = self._callbacks or _log.isEnabledFor(logging.INFO)
        # A report waits for the device, and is of the last step of any thread.
        with self._session.turn if told else nullcontext():
            log_probs = self._session.learn(named if x is None and named else x)
            if told:
                self._tell()
        return log_probs

    def adapt(self, x: Any) -> StepReport:
        """Learns from a batch; the report says what happened."""
        with self._session.turn:
            self(x)
            report = self.last
        assert report is not None
        return report

    def predict(self, x: Any) -> Tensor:
        """Log-probabilities that ``forward`` would return; no state changes."""
        return self._session.predict(x)

    def particles_log_probs(self, x: Any) -> Tensor:
        """(K, B, C) log-probabilities of each particle, (G, K, B, C) with populations; no state changes."""
        log_probs = self._session.particle_logits(x).log_softmax(dim=-1)
        return log_probs[0] if self.config.settings.populations is None else log_probs

    def uncertainty(self, x: Any) -> Uncertainty:
        """How sure the population is of each image, and what its hypotheses disagree about; no state changes."""
        export.require_one_population(self, "uncertainty")
        answer, logits, weights = self._session.predict_with_particles(x)
        return Uncertainty.of(answer[0], logits[0], weights[0])

    def answer(self, x: Any, abstain_below: float = 0.0) -> Tensor:
        """(B,) classes, -1 where the top probability is below ``abstain_below``; learns from the batch as a call does.

        (G, B) with populations.
        """
        if not isinstance(abstain_below, int | float) or not 0 <= abstain_below <= 1:
            raise ConfigError(f"abstain_below: got {abstain_below!r}; allowed are probabilities from 0 to 1.")
        top = self(x).max(dim=-1)
        return torch.where(top.values.exp() < abstain_below, -1, top.indices)

    def reset(self) -> None:
        """Returns to the source model and forgets everything learnt."""
        self._session.reset()

    # ------------------------------------------------------------------ what happened

    def on_step(self, callback: OnStep) -> Callable[[], None]:
        """Calls back with the report of every step from now on; returns what ends it.

        ``adapted.on_step(lambda report: mlflow.log_metrics(report.scalars(), step=report.step))``. The logger
        "polytta" is told as well: at level INFO of what is unusual, at DEBUG of every step.
        """
        if not callable(callback):
            raise ConfigError(f"callback: got {type(callback).__name__}; allowed is a function of a StepReport.")
        number = max(self._callbacks, default=0) + 1
        self._callbacks[number] = callback

        def stop() -> None:
            self._callbacks.pop(number, None)

        return stop

    def _tell(self) -> None:
        report = self.last
        assert report is not None
        if report.events and _log.isEnabledFor(logging.INFO):
            _log.info("step %d: %s", report.step, "; ".join(report.events))
        if _log.isEnabledFor(logging.DEBUG):
            told = ", ".join(f"{name} {value:.4g}" for name, value in report.scalars().items())
            _log.debug("step %d: %s", report.step, told)
        for callback in tuple(self._callbacks.values()):
            callback(report)

    @property
    def last(self) -> StepReport | None:
        """What the last step did; None before the first."""
        return self._session.ledger.last

    @property
    def last_logits(self) -> Tensor | None:
        """(G·K, B', C) of the usable images of the last step; unlike ``last`` it does not wait for the device."""
        return self._session.ledger.last_logits

    @property
    def totals(self) -> Totals:
        """Sums over all steps since the start or the last reset."""
        return self._session.ledger.totals

    def audit(self, path: str | Path | None) -> None:
        """Appends every event of the guard from now on to a file, one JSON object a line; None writes to none."""
        self._session.ledger.events.write_to(None if path is None else as_path("path", path))

    # ------------------------------------------------------------------ what there is

    @property
    def config(self) -> Config:
        """What the adapter does, every part an object; it never changes."""
        return self._session.config

    @property
    def settings(self) -> Settings:
        """Every option as it stands, with what the first batch has decided."""
        return self._session.settings

    @property
    def lr_origin(self) -> str:
        """Where the learning rates come from, in words."""
        return self._session.rates_origin

    @property
    def source_network(self) -> nn.Module:
        """The frozen source network."""
        return self._session.network

    @property
    def layout(self) -> Layout:
        """Where each adapted tensor lies in a particle."""
        return self._session.layout

    @property
    def source(self) -> Tensor:
        """(P,) parameters of the source model."""
        return self._session.source

    @property
    def theta(self) -> Tensor:
        """(G·K, P) parameters of the particles."""
        return self._session.state.theta

    @property
    def learning_rates(self) -> Tensor:
        """(G·K,) one per particle; NaN until a batch has decided them."""
        return self._session.learning_rates

    @property
    def step(self) -> Tensor:
        """() number of steps taken."""
        return self._session.state.step

    @property
    def evidence(self) -> dict[str, Tensor]:
        """What the particles' answers so far say about them (``polytta.aggregate.evidence``)."""
        return dict(self._session.state.evidence)

    @property
    def anchors(self) -> tuple[Tensor, Tensor]:
        """(G·K,) for each row its anchor's and its twin's (``polytta.aggregate.evidence``)."""
        return self._session.anchors

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """Who is trusted how much; ``print(*adapted.hypotheses)`` tells, ``polytta.report.by_axis`` sums it up."""
        export.require_one_population(self, "hypotheses")
        return self._session.hypotheses()

    def summary(self) -> str:
        """Layers adapted, particles, rates, what they cost and who is trusted, as a few lines to print."""
        return describe.summary(self)

    def __repr__(self) -> str:
        return describe.one_line(self)

    @property
    def weights_over_time(self) -> tuple[list[int], Tensor]:
        """Steps, and (steps, K) what each hypothesis weighed after them; of long streams every second, fourth, ..."""
        export.require_one_population(self, "weights_over_time")
        history = self._session.ledger.weights
        return list(history.steps), history.table(self.config.particles)

    def particle(self, index: int) -> dict[str, Tensor]:
        """Adapted parameters of one particle of G·K, named as in the source model."""
        row = export.row_of(self, index)
        return {name: value.clone() for name, value in self.layout.named(self.theta[row]).items()}

    def best(self) -> int:
        """The particle with the most label-free evidence."""
        export.require_one_population(self, "best")
        if not self.evidence:
            return 0
        return int(evidence.scores(evidence.with_anchors(self.evidence, *self.anchors)).argmax())

    # ------------------------------------------------------------------ taking it elsewhere

    def merge(self) -> dict[str, Tensor]:
        """The particles' mean parameters (a soup), named as in the source model."""
        export.require_one_population(self, "merge")
        export.require_lasting(self, "merge")
        return self.layout.named(self.theta.mean(dim=0))

    def freeze(self, which: export.Which = "ensemble") -> nn.Module:
        """A plain module from images to log-probabilities that never changes: see ``polytta.export.freeze``."""
        return export.freeze(self, which)

    def folded_engine(self) -> FoldedEngine:
        """A fresh folded engine over the same network, for a frozen ensemble."""
        session = self._session
        if session.findings is None:
            raise ConfigError("freeze: got an adapter that has not seen a batch; allowed after the first prediction.")
        return FoldedEngine(session.network, session.layout, session.findings, session.statistics)

    def save(self, path: str | Path) -> None:
        """Writes the adaptation state to one safetensors file, atomically."""
        persist.save(self, as_path("path", path))

    # ------------------------------------------------------------------ as a module

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, value in persist.named_state(self._session.state).items():
            # A recorded step writes the next one over its state.
            destination[prefix + name] = value.clone() if self._session.recorded else value
        destination[prefix + _SOURCE] = self._source_fingerprint()

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Takes over a state, after checking that all of it fits; refused states change nothing."""
        if not strict:
            raise StateError("strict: got False; allowed is True, since half a state is none.")
        self._load_named_state(state_dict)
        return nn.modules.module._IncompatibleKeys([], [])

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Mapping[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """As part of another module: what is wrong is told to whoever loads it all."""
        own = {name[len(prefix) :]: value for name, value in state_dict.items() if name.startswith(prefix)}
        if not own:
            missing_keys.extend(prefix + name for name in persist.named_state(self._session.state))
            return
        try:
            self._load_named_state(own)
        except StateError as error:
            error_msgs.append(str(error))

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> "Adapted":
        """``to``, ``cuda``, ``double``: moves the network and the state; particles never drop below float32."""
        self._session.move(fn)
        self._fingerprint = None
        with torch.inference_mode(False):
            self._first_buffers = {name: fn(value) for name, value in self._first_buffers.items()}
        self._say_where()
        return self

    def _load_named_state(self, tensors: Mapping[str, Any]) -> None:
        """Refuses a state that belongs to other weights; states of older versions do not say whose they are."""
        if not isinstance(tensors, Mapping):
            raise StateError(f"state_dict: got {type(tensors).__name__}; allowed is what state_dict() returns.")
        told = tensors.get(_SOURCE)
        if isinstance(told, Tensor) and not torch.equal(told.cpu(), self._source_fingerprint()):
            raise StateError(
                "state_dict: got one that belongs to a model with other weights; allowed is one of the same model."
            )
        persist.load_named_state(self._session, {name: value for name, value in tensors.items() if name != _SOURCE})

    def _source_fingerprint(self) -> Tensor:
        if self._fingerprint is None:
            told = persist.fingerprint(self.source_network, self._first_buffers).encode()
            self._fingerprint = torch.tensor(list(told), dtype=torch.uint8)
        return self._fingerprint

    def _say_where(self) -> None:
        """Keeps one parameter without values: libraries ask the first one for the model's device and type."""
        own = next(self.source_network.parameters())
        with torch.inference_mode(False):
            self.where = nn.Parameter(own.new_empty(0), requires_grad=False)

    def __getstate__(self) -> dict[str, Any]:
        """Callbacks stay here: what they write to seldom travels."""
        return {**self.__dict__, "_callbacks": {}}

    def __deepcopy__(self, memo: dict[int, Any]) -> "Adapted":
        other = self.__class__.__new__(self.__class__)
        memo[id(self)] = other
        with torch.inference_mode(False):
            other.__dict__.update(copy.deepcopy(self.__getstate__(), memo))
        return other
