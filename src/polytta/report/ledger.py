"""The books of a stream: numbers are kept where they were made and read off only when somebody looks.

Reading a number off a GPU waits for it, and a stream that waits at every step leaves the GPU idle in between.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from polytta.diversity import Diversifier
from polytta.methods.base import Proposal
from polytta.report.step import StepReport, Totals

_MOST_PENDING = 256


def pack(proposal: Proposal, moved: Tensor, forward_samples: Tensor | int, backward_samples: Tensor | int) -> Tensor:
    """All numbers of a step as one float64 vector: counts of each filter, losses, moves, resets, work done."""
    rows = moved.shape[0]
    parts = [moved, torch.zeros_like(moved) if proposal.resets is None else proposal.resets]
    losses = moved.new_zeros(rows, dtype=torch.float64) if proposal.losses is None else proposal.losses
    counts = [selection.counts for selection in proposal.selections]
    if counts:
        parts.append(torch.stack(counts).sum(dim=0).flatten())
    work = [_scalar(forward_samples, moved), _scalar(backward_samples, moved)]
    return torch.cat([losses.to(torch.float64), *[part.to(torch.float64) for part in (*parts, *work)]])


def _scalar(value: Tensor | int, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value.reshape(1)
    return torch.full((1,), value, dtype=torch.float64, device=like.device)


@dataclass(frozen=True)
class Entry:
    """One step as it was left by the engine.

    Attributes:
        step: number of the step, from 1.
        samples: images in the batch (of one population).
        rejected: images nothing was learnt from.
        numbers: packed numbers; None when no image was usable.
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
    measures: dict[str, Tensor]


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
        self._pending: list[Entry] = []
        self._last: Entry | StepReport | None = None

    def note(self, entry: Entry) -> None:
        """Writes down a step."""
        # Logits and parameters of older steps are not needed for the totals, and would pile up.
        slim = Entry(entry.step, entry.samples, entry.rejected, entry.numbers, None, entry.theta[:0], entry.source, {})
        self._pending.append(slim)
        self._last = entry
        if len(self._pending) >= _MOST_PENDING:
            self._settle()

    @property
    def last(self) -> StepReport | None:
        """The report of the last step."""
        if isinstance(self._last, Entry):
            numbers = None if self._last.numbers is None else self._last.numbers.tolist()
            self._last = self._report(self._last, numbers)
        return self._last

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
        twin._totals, twin._last = self.totals.copy(), self.last
        return twin

    def _settle(self) -> None:
        packed = [entry.numbers for entry in self._pending if entry.numbers is not None]
        rows = iter(torch.stack(packed).tolist() if packed else ())
        for entry in self._pending:
            self._totals.add(self._report(entry, None if entry.numbers is None else next(rows)))
        self._pending.clear()

    def _report(self, entry: Entry, numbers: list[float] | None) -> StepReport:
        rows = self._rows
        values = numbers if numbers is not None else [0.0] * (3 * rows + len(self._filters) * rows + 2)
        counts = values[3 * rows : -2]
        selected = {
            name: tuple(int(value) for value in counts[place * rows : (place + 1) * rows]) or (0,) * rows
            for place, name in enumerate(self._filters)
        }
        return StepReport(
            step=entry.step,
            samples=entry.samples,
            rejected=entry.rejected,
            selected=selected,
            loss=tuple(values[:rows]),
            stepped=tuple(bool(value) for value in values[rows : 2 * rows]),
            reset=tuple(bool(value) for value in values[2 * rows : 3 * rows]),
            forward_samples=int(values[-2]),
            backward_samples=int(values[-1]),
            logits=entry.logits,
            theta=entry.theta,
            source=entry.source,
            diversifier=self._diversifier,
            measures=entry.measures,
            populations=self._populations,
        )
