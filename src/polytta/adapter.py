"""The object a user holds: an nn.Module that predicts and adapts."""

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polytta import export, persist
from polytta.aggregate import evidence
from polytta.engine import Session
from polytta.errors import ConfigError, StateError
from polytta.network.layout import Layout
from polytta.particles import FoldedEngine
from polytta.report import Hypothesis, StepReport, Totals
from polytta.settings import Config, Settings
from polytta.system.files import as_path


class Adapted(nn.Module):
    """K particles over a frozen model. Made by ``polytta.adapt``.

    ``forward`` predicts and then adapts, whatever ``train()``, ``eval()``, ``no_grad`` or ``inference_mode`` say; the
    network itself always runs in evaluation mode. ``state_dict`` holds the adaptation state, not the frozen weights.
    """

    _session: Session

    def __init__(self, model: nn.Module, config: Config) -> None:
        super().__init__()
        # Not a submodule: state_dict must not hold the frozen weights.
        self.__dict__["_session"] = Session(model, config)

    # ------------------------------------------------------------------ predicting and learning

    def forward(self, x: Tensor) -> Tensor:
        """Predicts, then adapts.

        Args:
            x: (B, ...) floating-point images, preprocessed as the model expects; (G, B, ...) with populations.

        Returns:
            (B, C) log-probabilities of the population *before* it learnt from this batch (after, for episodic methods);
            (G, B, C) with populations.
        """
        return self._session.learn(x)

    def adapt(self, x: Tensor) -> StepReport:
        """Learns from a batch; the report says what happened."""
        self._session.learn(x)
        report = self.last
        assert report is not None
        return report

    def predict(self, x: Tensor) -> Tensor:
        """Log-probabilities that ``forward`` would return; no state changes."""
        return self._session.predict(x)

    def particles_log_probs(self, x: Tensor) -> Tensor:
        """(K, B, C) log-probabilities of each particle, (G, K, B, C) with populations; no state changes."""
        log_probs = self._session.particle_logits(x).log_softmax(dim=-1)
        return log_probs[0] if self.config.settings.populations is None else log_probs

    def reset(self) -> None:
        """Returns to the source model and forgets everything learnt."""
        self._session.reset()

    # ------------------------------------------------------------------ what happened

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

    def particle(self, index: int) -> dict[str, Tensor]:
        """Adapted parameters of one particle of G·K, named as in the source model."""
        return {name: value.clone() for name, value in self.layout.named(self.theta[index]).items()}

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

    def freeze(self, which: export.Which = "merged") -> nn.Module:
        """A plain module that answers as this adapter would and never changes: see ``polytta.export.freeze``."""
        return export.freeze(self, which)

    def folded_engine(self) -> FoldedEngine:
        """A fresh folded engine over the same network, for a frozen ensemble."""
        findings = self._session.findings
        if findings is None:
            raise ConfigError("freeze: got an adapter that has not seen a batch; allowed after the first prediction.")
        return self._session.folded_engine(findings)

    def save(self, path: str | Path) -> None:
        """Writes the adaptation state to one safetensors file, atomically."""
        persist.save(self, as_path("path", path))

    # ------------------------------------------------------------------ as a module

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, value in persist.named_state(self._session.state).items():
            # A recorded step writes the next one over its state.
            destination[prefix + name] = value.clone() if self._session.recorded else value

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Takes over a state, after checking that all of it fits; refused states change nothing."""
        if not strict:
            raise StateError("strict: got False; allowed is True, since half a state is none.")
        persist.load_named_state(self._session, state_dict)
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
            persist.load_named_state(self._session, own)
        except StateError as error:
            error_msgs.append(str(error))

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> "Adapted":
        """``to``, ``cuda``, ``double``: moves the network and the state; particles never drop below float32."""
        self._session.move(fn)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Adapted":
        other = self.__class__.__new__(self.__class__)
        memo[id(self)] = other
        with torch.inference_mode(False):
            other.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return other
