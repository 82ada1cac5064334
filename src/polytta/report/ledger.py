"""The books of a stream: numbers are kept where they were made and read off only when somebody looks.

Reading a number off a GPU waits for it, and a stream that waits at every step leaves the GPU idle in between.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from polytta.diversity import Diversifier
from polytta.guard import ACTIONS, VERDICTS
from polytta.report.events import Events
from polytta.report.step import StepReport, Totals
from polytta.report.weights import WeightHistory

# Where nothing waits, a warning comes with the step it is about.
_MOST_PENDING = {"cpu": 1}
_MOST_PENDING_ELSEWHERE = 64
_COLUMNS = 11
"""Before the counts of the filters."""


@dataclass(frozen=True)
class StepEntry:
    """One step as it was left by the engine.

    Attributes:
        step: number of the step, from 1.
        samples: images in the batch (of one population).
        rejected: images nothing was learnt from.
        numbers: losses, moves, resets, forward and backward samples, shares selected, lengths of gradients, restarts,
            the guard's verdicts, actions and broken answers, and counts of each filter, G·K of each, as one vector;
            None when no image was usable.
        logits: (G·K, B, C); None when no image was usable.
        theta: (G·K, P) after the step.
        source: (P,).
        measures: what the diversifier found out.
    """

    step: int
    samples: int
    rejected: int
    numbers: Tensor | None
    logits: Tensor | None
    theta: Tensor
    source: Tensor
    measures: Mapping[str, Tensor]


class Ledger:
    """Keeps the last step and the totals of a stream.

    Args:
        filters: names of the method's filters.
        rows: G·K.
        populations: G.
        diversifier: how particles interact.
    """

    def __init__(self, filters: Sequence[str], rows: int, populations: int, diversifier: Diversifier) -> None:
        self._filters, self._rows = tuple(filters), rows
        self._populations, self._diversifier = populations, diversifier
        self._totals = Totals()
        self.events = Events()
        self._pending: list[StepEntry] = []
        self._last: StepEntry | StepReport | None = None
        self.weights = WeightHistory()

    def note(self, entry: StepEntry) -> None:
        """Writes down a step."""
        # Logits and parameters of older steps are not needed for the totals, and would pile up.
        # Not a slice of them either: an empty view keeps all of its storage.
        nothing = entry.theta.new_empty(0)
        slim = StepEntry(entry.step, entry.samples, entry.rejected, entry.numbers, None, nothing, entry.source, {})
        self._pending.append(slim)
        self._last = entry
        if len(self._pending) >= _MOST_PENDING.get(entry.theta.device.type, _MOST_PENDING_ELSEWHERE):
            self._settle()

    @property
    def last(self) -> StepReport | None:
        """The report of the last step."""
        if isinstance(self._last, StepEntry):
            numbers = None if self._last.numbers is None else self._last.numbers.tolist()
            self._last = self._report(self._last, numbers)
        return self._last

    @property
    def last_logits(self) -> Tensor | None:
        """(G·K, B', C) of the usable images of the last step, without waiting for anything else about it."""
        return None if self._last is None else self._last.logits

    @property
    def totals(self) -> Totals:
        """Sums over all steps."""
        self._settle()
        return self._totals

    @totals.setter
    def totals(self, totals: Totals) -> None:
        self._pending.clear()
        self._totals = totals

    def copy(self) -> "Ledger":
        """Books of their own, as they stand."""
        twin = Ledger(self._filters, self._rows, self._populations, self._diversifier)
        twin._totals, twin._last, twin.weights = self.totals.copy(), self.last, self.weights.copy()
        twin.events = self.events.copy()
        return twin

    def _settle(self) -> None:
        packed = [entry.numbers for entry in self._pending if entry.numbers is not None]
        # One reading for all of them. An adapter may have moved to another device since.
        flat = iter(torch.cat([numbers.to(packed[-1].device) for numbers in packed]).tolist() if packed else ())
        for entry in self._pending:
            numbers = None if entry.numbers is None else list(islice(flat, len(entry.numbers)))
            report = self._report(entry, numbers)
            self._totals.add(report)
            self.events.tell(report)
        self._pending.clear()

    def _report(self, entry: StepEntry, numbers: list[float] | None) -> StepReport:
        rows = self._rows
        values = numbers if numbers is not None else [0.0] * (_COLUMNS + len(self._filters)) * rows
        columns = [tuple(values[place : place + rows]) for place in range(0, len(values), rows)]
        loss, stepped, reset, forward, backward, share, gradient, *columns = columns
        restarted, verdict, actions, broken, *counts = columns
        selected = {name: _whole(count) for name, count in zip(self._filters, counts, strict=True)}
        return StepReport(
            step=entry.step,
            samples=entry.samples,
            rejected=entry.rejected,
            selected=selected,
            loss=loss,
            stepped=tuple(map(bool, stepped)),
            reset=tuple(map(bool, reset)),
            restarted=tuple(map(bool, restarted)),
            health=tuple(VERDICTS[int(one)] for one in verdict),
            actions=tuple(_in_words(int(one)) for one in actions),
            broken=_whole(broken),
            selected_share=share,
            gradient_norm=gradient,
            forward_by_particle=_whole(forward),
            backward_by_particle=_whole(backward),
            logits=entry.logits,
            theta=entry.theta,
            source=entry.source,
            diversifier=self._diversifier,
            measures=dict(entry.measures),
            populations=self._populations,
        )


def _in_words(actions: int) -> tuple[str, ...]:
    return tuple(name for bit, name in ACTIONS.items() if actions & bit)


def _whole(values: Sequence[float]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
