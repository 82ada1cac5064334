"""Runs attacks against a model with and without its guard, side by side on the same images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from torch import Tensor
from tqdm import tqdm

import polytta
from polytta.adapter import Adapted
from polytta.errors import ConfigError
from polytta.lab.attack.crafted import Attacker
from polytta.lab.attack.streams import ATTACKS, Material, Step
from polytta.lab.pages.tables import Table, TableCell, TableRow
from polytta.models import SourceModel
from polytta.network.norms import is_batch_norm

_AT_ONCE = 64


@dataclass(frozen=True)
class Attack:
    """What is attacked, and how.

    Attributes:
        name: of the attack.
        settings: of ``polytta.adapt``, but for the guard.
        guards: to compare.
        batch_size: of the stream.
        steps: batches of it.
        fraction: of a batch that is the attacker's.
        rounds: that the attacker takes over a batch.
        rate: learning rate that it expects.
        seed: of what is drawn.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    guards: Sequence[Any] = ("off", "default")
    batch_size: int = 32
    steps: int = 20
    fraction: float = 0.2
    rounds: int = 4
    rate: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.name not in ATTACKS:
            raise ConfigError(f"attacks: got {self.name!r}; allowed are {', '.join(ATTACKS)}.")
        if not 0 < self.fraction < 1:
            raise ConfigError(f"fraction: got {self.fraction}; allowed is 0 < fraction < 1.")
        for name, least in (("batch_size", 2), ("steps", 1), ("rounds", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name}: got {getattr(self, name)}; allowed is a whole number >= {least}.")


@dataclass(frozen=True)
class Outcome:
    """What became of one adapter.

    Attributes:
        attack: what it was given.
        guard: what watched over it.
        during: percent right of the honest images in the stream; None where there were none.
        after: percent right of clean images afterwards.
        source: percent right of the source model on the latter.
        source_during: and on the former.
        first_alarm: number of the step of the first verdict "collapsed"; None where there was none.
        actions: how often the guard did what, over all particles.
    """

    attack: Attack
    guard: str
    during: float | None
    after: float
    source: float
    source_during: float | None
    first_alarm: int | None
    actions: Mapping[str, int]


def attacked(
    source: SourceModel, x: Tensor, labels: Tensor, attack: Attack, *, judged_on: int, show: bool = True
) -> list[Outcome]:
    """One outcome per guard; the last ``judged_on`` of the images are those that are judged on afterwards."""
    if not 0 < judged_on < len(x):
        raise ConfigError(f"judged_on: got {judged_on} of {len(x)} images; allowed are some, but not all.")
    seen, later = slice(0, len(x) - judged_on), slice(len(x) - judged_on, len(x))
    by_batch = any(is_batch_norm(module) for module in source.module.modules())
    attacker = Attacker(source.module, attack.rate, attack.rounds, by_batch=by_batch)
    material = Material(x[seen], labels[seen], attack.batch_size, attack.steps, attack.fraction, attacker, attack.seed)
    adapters = [polytta.adapt(source.module, **attack.settings, guard=guard) for guard in attack.guards]
    reference = polytta.adapt(source.module, "source", particles=1, statistics="source", guard="off")
    sums, alarms = [_Right() for _ in (*adapters, reference)], [None] * len(adapters)  # type: list[_Right], list[int | None]
    batches = ATTACKS[attack.name](material)
    for number, step in enumerate(tqdm(batches, attack.name, attack.steps, disable=not show), start=1):
        for place, adapted in enumerate(adapters):
            sums[place].add(adapted(step.x), step)
            report = adapted.last
            if alarms[place] is None and report is not None and "collapsed" in report.health:
                alarms[place] = number
        sums[-1].add(reference(step.x), step)
    own = accuracy(reference, x[later], labels[later])
    return [
        Outcome(
            attack,
            adapted.config.guard.name,
            sums[place].percent,
            accuracy(adapted, x[later], labels[later]),
            own,
            sums[-1].percent,
            alarms[place],
            {name: sum(counts) for name, counts in adapted.totals.actions.items()},
        )
        for place, adapted in enumerate(adapters)
    ]


def accuracy(adapted: Adapted, x: Tensor, labels: Tensor) -> float:
    """Percent right, without learning; non-finite answers are an error of ours, and said to be."""
    right = 0
    for first in range(0, len(x), _AT_ONCE):
        answers = adapted.predict(x[first : first + _AT_ONCE])
        if not isfinite(float(answers.sum())):
            raise ConfigError(f"model: got answers that are not finite ({answers.sum()}); allowed are finite ones.")
        right += int((answers.argmax(dim=1) == labels[first : first + _AT_ONCE]).sum())
    return 100 * right / len(x)


def as_table(outcomes: Sequence[Outcome]) -> Table:
    """A row per attack and guard; accuracies in percent."""
    header = ("attack", "guard", "during", "source", "clean after", "source", "alarm", "the guard did")
    rows = []
    for one in outcomes:
        told = ", ".join(f"{name} {count}" for name, count in one.actions.items())
        alarm = "-" if one.first_alarm is None else f"step {one.first_alarm}"
        texts = (one.guard, _percent(one.during), _percent(one.source_during), _percent(one.after))
        cells = (*texts, _percent(one.source), alarm, told or "-")
        rows.append(TableRow(one.attack.name, tuple(TableCell(text) for text in cells)))
    return Table(header, tuple(rows))


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


class _Right:
    """Counts right answers to honest images."""

    def __init__(self) -> None:
        self._right = self._all = 0

    def add(self, answers: Tensor, step: Step) -> None:
        honest = step.labels >= 0
        self._right += int((answers.argmax(dim=1)[honest] == step.labels[honest]).sum())
        self._all += int(honest.sum())

    @property
    def percent(self) -> float | None:
        return 100 * self._right / self._all if self._all else None
