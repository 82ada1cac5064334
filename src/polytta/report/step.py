"""Typed records of what a step did. Costly measures are worked out only when they are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log
from reprlib import repr as shortened
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from polytta.diversity import Diversifier
from polytta.errors import StateError
from polytta.report.measures import (
    disagreement_with_others,
    distance_to_source,
    mean_off_diagonal,
    mutual_information,
    pairwise_distances,
)
from polytta.report.signals import Signals
from polytta.roles.measures import disagreement, entropy

_MOST = 2**53


@dataclass(frozen=True)
class StepReport:
    """One step of the population. Per-particle fields are tuples of length K, of length G·K for G populations.

    Attributes:
        step: number of the step, from 1.
        samples: images in the batch (of each population).
        rejected: images kept from adaptation because they had non-finite or absurd values.
        selected: {filter name: samples left after it, per particle}, summed over views.
        loss: value of each particle's loss (0 where nothing was selected).
        stepped: whether the particle's parameters moved.
        reset: whether the particle returned to source.
        restarted: whether it had collapsed, and goes on from another.
        health: the guard's verdict on it: "ok", "warn" or "collapsed".
        actions: what the guard did to it, in words (``polytta.guard.ACTIONS``).
        broken: images of which its answer was not finite.
        selected_share: of the images that its losses were offered, those they were taken of.
        gradient_norm: length of the direction it was to descend, before anybody clipped it; infinite where it was not
            finite, so that nothing was learnt from it.
        forward_by_particle: images whose logits were needed, over all passes; the static engine computes the others
            too.
        backward_by_particle: images whose loss was differentiated, over all passes; a second derivative is not counted
            again.
        logits: (K, B', C) of the usable images that the answer was made from: before the update, or after an episode.
        theta: (K, P) after the step.
        source: (P,).
        diversifier: how the particles interacted.
        measures: what the diversifier found out on the way.
        populations: G.
    """

    step: int
    samples: int
    rejected: int
    selected: dict[str, tuple[int, ...]]
    loss: tuple[float, ...]
    stepped: tuple[bool, ...]
    reset: tuple[bool, ...]
    restarted: tuple[bool, ...]
    health: tuple[str, ...]
    actions: tuple[tuple[str, ...], ...]
    broken: tuple[int, ...]
    selected_share: tuple[float, ...]
    gradient_norm: tuple[float, ...]
    forward_by_particle: tuple[int, ...]
    backward_by_particle: tuple[int, ...]
    logits: Tensor | None = field(repr=False)
    theta: Tensor = field(repr=False)
    source: Tensor = field(repr=False)
    diversifier: Diversifier = field(repr=False)
    measures: dict[str, Tensor] = field(repr=False)
    populations: int = 1

    def population(self, number: int) -> "StepReport":
        """The report of one of several populations."""
        size = self.theta.shape[0] // self.populations
        own = slice(number * size, (number + 1) * size)
        return replace(
            self,
            selected={name: counts[own] for name, counts in self.selected.items()},
            loss=self.loss[own],
            stepped=self.stepped[own],
            reset=self.reset[own],
            restarted=self.restarted[own],
            health=self.health[own],
            actions=self.actions[own],
            broken=self.broken[own],
            selected_share=self.selected_share[own],
            gradient_norm=self.gradient_norm[own],
            forward_by_particle=self.forward_by_particle[own],
            backward_by_particle=self.backward_by_particle[own],
            logits=None if self.logits is None else self.logits[own],
            theta=self.theta[own],
            measures={name: value[number : number + 1] for name, value in self.measures.items()},
            populations=1,
        )

    def scalars(self) -> dict[str, float]:
        """The step as plain numbers, means over particles, for whatever draws curves."""
        found = {
            "images": float(self.samples),
            "rejected": float(self.rejected),
            "loss": fmean(self.loss),
            "gradient_norm": fmean(self.gradient_norm),
            "selected_share": fmean(self.selected_share),
            "entropy": fmean(self.entropy),
            "disagreement": self.disagreement,
            "mutual_information": self.mutual_information,
            "distance_to_source": fmean(self.distance_to_source),
            "stepped": fmean(self.stepped),
            "resets": float(sum(self.reset)),
            "restarts": float(sum(self.restarted)),
        }
        return found | {f"selected_{name}": fmean(counts) for name, counts in self.selected.items()}

    @property
    def events(self) -> tuple[str, ...]:
        """What was unusual, in words; empty for most steps."""
        counts = {
            "images kept from adaptation": self.rejected,
            "particles returned to source": sum(self.reset),
            "collapsed particles started over": sum(self.restarted),
        }
        return tuple(f"{count} {what}" for what, count in counts.items() if count)

    @property
    def forward_samples(self) -> int:
        """(particle, image) pairs whose logits were needed."""
        return sum(self.forward_by_particle)

    @property
    def backward_samples(self) -> int:
        """(particle, image) pairs whose loss was differentiated."""
        return sum(self.backward_by_particle)

    def _mean_over_populations(self, name: str) -> float:
        return fmean(getattr(self.population(number), name) for number in range(self.populations))

    @cached_property
    def entropy(self) -> tuple[float, ...]:
        """Mean prediction entropy of each particle, in nats."""
        if self.logits is None:
            return (0.0,) * self.theta.shape[0]
        return tuple(entropy(self.logits).mean(dim=1).tolist())

    @cached_property
    def signals(self) -> tuple[Signals, ...]:
        """What is known of each particle's health, besides the verdict in ``health``."""
        rows, logits = self.theta.shape[0], self.logits
        images, classes = (1, 2) if logits is None else logits.shape[1:]
        apart = [0.0] * rows if logits is None else disagreement_with_others(logits, self.populations).tolist()
        still = max(float(self.source.norm()), torch.finfo(self.source.dtype).tiny)
        return tuple(
            Signals(
                loss=self.loss[row],
                gradient_norm=self.gradient_norm[row],
                selected_share=self.selected_share[row],
                entropy=self.entropy[row] / log(max(2, classes)),
                disagreement=apart[row],
                drift=self.distance_to_source[row] / still,
                broken=self.broken[row] / images,
            )
            for row in range(rows)
        )

    @cached_property
    def distance_to_source(self) -> tuple[float, ...]:
        """‖θᵢ - θ⁰‖ of each particle."""
        return tuple(distance_to_source(self.theta, self.source).tolist())

    @cached_property
    def pairwise_distance(self) -> float:
        """Mean ‖θᵢ - θⱼ‖ over pairs of particles."""
        if self.populations > 1:
            return self._mean_over_populations("pairwise_distance")
        return mean_off_diagonal(pairwise_distances(self.theta))

    @cached_property
    def disagreement(self) -> float:
        """Share of samples on which two particles predict different classes, averaged over pairs."""
        if self.populations > 1:
            return self._mean_over_populations("disagreement")
        return 0.0 if self.logits is None else float(disagreement(self.logits).to(torch.float64).mean())

    @cached_property
    def mutual_information(self) -> float:
        """Entropy of the mean prediction minus mean entropy, averaged over samples: what particles disagree about."""
        if self.populations > 1:
            return self._mean_over_populations("mutual_information")
        return 0.0 if self.logits is None else float(mutual_information(self.logits).mean())

    @cached_property
    def input_gradient_cosine(self) -> float | None:
        """Mean cosine between particles' input gradients; None unless the diversifier looked at them."""
        value = self.measures.get("input_gradient_cosine")
        return None if value is None else float(value.mean())

    @cached_property
    def kernel(self) -> Tensor | None:
        """(K, K) similarity of the particles after the step, (G, K, K) of several populations; None unless the
        diversifier has a kernel."""
        if self.populations > 1:
            return self.diversifier.kernel_matrix(self.theta.unflatten(0, (self.populations, -1)))
        return self.diversifier.kernel_matrix(self.theta)


@dataclass
class Totals:
    """Sums over all steps since the start or the last reset."""

    steps: int = 0
    samples: int = 0
    rejected: int = 0
    forward_by_particle: tuple[int, ...] = ()
    backward_by_particle: tuple[int, ...] = ()
    selected: dict[str, tuple[int, ...]] = field(default_factory=dict)
    stepped: tuple[int, ...] = ()
    resets: tuple[int, ...] = ()
    restarts: tuple[int, ...] = ()
    collapses: tuple[int, ...] = ()
    broken: tuple[int, ...] = ()
    actions: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def from_plain(cls, stored: object) -> "Totals":
        """Totals from plain values, as JSON holds them; older ones lack some."""
        known = vars(cls())
        if not isinstance(stored, Mapping) or not stored.keys() <= known.keys():
            raise StateError(f"totals: got {shortened(stored)}; allowed are {', '.join(known)}.")
        values = {name: _counts(name, value, known[name]) for name, value in stored.items()}
        return cls(**values)

    def fit(self, rows: int) -> bool:
        """Whether they are of so many particles."""
        lists = [value for value in vars(self).values() if isinstance(value, tuple)]
        lists += [*self.selected.values(), *self.actions.values()]
        return all(len(counts) in (0, rows) for counts in lists)

    @property
    def forward_samples(self) -> int:
        """(particle, image) pairs whose logits were needed."""
        return sum(self.forward_by_particle)

    @property
    def backward_samples(self) -> int:
        """(particle, image) pairs whose loss was differentiated."""
        return sum(self.backward_by_particle)

    def copy(self) -> "Totals":
        """Totals of their own."""
        return replace(self, selected=dict(self.selected), actions=dict(self.actions))

    def add(self, report: StepReport) -> None:
        """Counts one more step."""
        self.steps += 1
        self.samples += report.samples
        self.rejected += report.rejected
        self.forward_by_particle = _added(self.forward_by_particle, report.forward_by_particle)
        self.backward_by_particle = _added(self.backward_by_particle, report.backward_by_particle)
        for name, counts in report.selected.items():
            self.selected[name] = _added(self.selected.get(name, ()), counts)
        self.stepped = _added(self.stepped, report.stepped)
        self.resets = _added(self.resets, report.reset)
        self.restarts = _added(self.restarts, report.restarted)
        self.collapses = _added(self.collapses, tuple(one == "collapsed" for one in report.health))
        self.broken = _added(self.broken, report.broken)
        for name in {name for done in report.actions for name in done}:
            now = tuple(name in done for done in report.actions)
            self.actions[name] = _added(self.actions.get(name, ()), now)


def _added(left: tuple[int, ...], right: tuple[int, ...] | tuple[bool, ...]) -> tuple[int, ...]:
    left = left or (0,) * len(right)
    return tuple(a + int(b) for a, b in zip(left, right, strict=True))


def _counts(name: str, stored: Any, like: Any) -> Any:
    """A count, one per particle, or these by name, whichever ``like`` is."""
    if isinstance(like, dict) and isinstance(stored, Mapping):
        return {str(key): _counts(f"{name} {key}", counts, ()) for key, counts in stored.items()}
    if isinstance(like, tuple) and isinstance(stored, list | tuple):
        return tuple(_counts(name, count, 0) for count in stored)
    if not isinstance(like, int) or type(stored) is not int or not 0 <= stored <= _MOST:
        kind = "whole numbers" if isinstance(like, int) else "lists of whole numbers"
        raise StateError(
            f"totals: got {shortened(stored)} for {shortened(name)}; allowed are {kind} from 0 to {_MOST}."
        )
    return stored
