"""A panel of results as the paper has them: methods as rows, corruptions as columns.

Everything here is worked out from a record's plain figures, so that a table of them is as good as the records.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import Any

from polytta.data.corruption_names import COMMON_CORRUPTIONS
from polytta.lab.bench.grid import POOLED
from polytta.lab.intervals import FEWEST, margin_of_mean, margin_of_share, spread
from polytta.lab.pages.stat import Stat

PANEL_FIELDS = ("dataset", "model", "scenario", "severity", "batch_size", "images")
ALL = "all"
SCENARIO_NAMES = {
    "batch1": "batch size 1",
    "mild": "mild",
    "label_shift": "label shifts",
    "mixed": "mixed shifts",
    "continual": "continual",
    "markov": "Markov",
}


@dataclass(frozen=True, eq=False)
class Entry:
    """The plain figures of one record; values of ``cell`` are text, but for whole numbers."""

    key: str
    cell: Mapping[str, Any]
    results: Mapping[str, Any]
    times: Mapping[str, Any]

    @property
    def column(self) -> str:
        """The corruption, ``all`` for a stream of several, or ``clean``."""
        return ALL if self.cell["scenario"] in POOLED else str(self.cell["corruption"] or "clean")

    @property
    def corruptions(self) -> tuple[str, ...]:
        """All that it met."""
        return tuple(name for name in str(self.cell["corruption"]).split("+") if name)


@dataclass(frozen=True, eq=False)
class Row:
    """One method over the columns of a panel; ``entries`` of a column differ in their seeds alone."""

    name: str
    settings: Mapping[str, Any]
    entries: Mapping[str, tuple[Entry, ...]]
    _averages: dict[tuple[str, ...], Stat | None] = field(default_factory=dict, repr=False)

    @property
    def is_source(self) -> bool:
        """Whether it is the model as it came, looking at the images as they come."""
        as_they_come = all(self.settings.get(name, "none") == "none" for name in ("views", "lenses"))
        return not self.adapts and self.settings["particles"] == 1 and as_they_come

    @property
    def adapts(self) -> bool:
        """Whether anything is learnt."""
        return bool(self.settings["method"] != "source")

    @property
    def is_single(self) -> bool:
        """Whether it adapts one model."""
        return self.adapts and self.settings["particles"] == 1

    def stat(self, column: str, measure: str = "accuracy") -> Stat | None:
        """Over seeds; None where the measure is missing."""
        entries = self.entries.get(column, ())
        known = [float(value) for e in entries if (value := e.results.get(measure)) is not None]
        if not known or len(known) != len(entries):
            return None
        stat = Stat.of(known)
        if measure != "accuracy":
            return stat
        counted = margin_of_share(stat.mean, int(entries[0].cell["images"]))
        return replace(stat, margin=max(counted, margin_of_mean(known)) if len(known) >= FEWEST else counted)

    def average(self, columns: Sequence[str], measure: str = "accuracy") -> Stat | None:
        """Over columns, then over seeds; None while a column is missing."""
        place = (measure, *columns)
        if place not in self._averages:
            self._averages[place] = self._average(columns, measure)
        return self._averages[place]

    def _average(self, columns: Sequence[str], measure: str) -> Stat | None:
        per_column = [self.stat(column, measure) for column in columns]
        if not columns or any(stat is None for stat in per_column):
            return None
        mean = fmean(stat.mean for stat in per_column if stat is not None)
        by_seed = [{e.cell["seed"]: float(e.results[measure]) for e in self.entries[column]} for column in columns]
        shared = sorted(set.intersection(*(set(values) for values in by_seed)))
        per_seed = [fmean(values[seed] for values in by_seed) for seed in shared]
        return Stat(
            mean, spread(per_seed) if len(per_seed) > 1 else None, len(shared), _margin_of_average(per_column, per_seed)
        )

    def gain_over(self, other: "Row", columns: Sequence[str]) -> Stat | None:
        """Accuracy less that of another row, averaged over columns.

        With three seeds or more the differences of the seeds are what varies; with fewer all that is known are two
        accuracies over so many images, as if the images were different ones, which is on the safe side.
        """
        own, theirs = self.average(columns), other.average(columns)
        if own is None or theirs is None:
            return None
        gains = []
        for seed in sorted(set.intersection(*(row.seeds_of(column) for row in (self, other) for column in columns))):
            mine, yours = (fmean(row.accuracy_at(column, seed) for column in columns) for row in (self, other))
            gains.append(mine - yours)
        if len(gains) >= FEWEST:
            return replace(Stat.of(gains), mean=own.mean - theirs.mean, margin=margin_of_mean(gains))
        margin = math.hypot(own.margin or 0.0, theirs.margin or 0.0)
        return Stat(own.mean - theirs.mean, None, len(gains), margin)

    def seeds_of(self, column: str) -> set[int]:
        """Seeds that a column has been run with."""
        return {int(e.cell["seed"]) for e in self.entries.get(column, ())}

    def accuracy_at(self, column: str, seed: int) -> float:
        """Of one record."""
        return next(float(e.results["accuracy"]) for e in self.entries[column] if e.cell["seed"] == seed)

    @property
    def speed(self) -> float | None:
        """Images per second over all its entries."""
        timed = [e.times for each in self.entries.values() for e in each if e.times.get("wall_seconds")]
        seconds = sum(float(t["wall_seconds"]) for t in timed)
        images = sum(float(t["wall_seconds"]) * float(t["images_per_second"]) for t in timed)
        return images / seconds if seconds else None


def _margin_of_average(per_column: Sequence[Stat | None], per_seed: Sequence[float]) -> float | None:
    margins = [stat.margin for stat in per_column if stat is not None and stat.margin is not None]
    if len(margins) != len(per_column):
        return None
    counted = math.hypot(*margins) / len(margins)
    return max(counted, margin_of_mean(per_seed)) if len(per_seed) >= FEWEST else counted


@dataclass(frozen=True, eq=False)
class Panel:
    """All rows that met the same model, data and scenario; the source row comes first.

    ``fields`` are those of ``PANEL_FIELDS``, and in ``pooled`` the corruptions of a stream that has several.
    """

    fields: Mapping[str, Any]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def anchor(self) -> str:
        """For links."""
        parts = [
            str(self.fields[name]) for name in ("model", "scenario", "dataset", "severity", "batch_size", "images")
        ]
        if self.fields["pooled"] != COMMON_CORRUPTIONS:
            parts += self.fields["pooled"]
        # Names may hold anything, and an anchor is part of addresses and of LaTeX labels.
        return re.sub(r"[^a-z0-9.:=+-]+", "-", "-".join(parts).lower())

    @property
    def title(self) -> str:
        """Model and scenario in words."""
        scenario = SCENARIO_NAMES.get(self.fields["scenario"], self.fields["scenario"])
        return f"{self.fields['model']}, {scenario}"

    @property
    def description(self) -> str:
        """What all its rows share."""
        f = self.fields
        severity = "" if f["severity"] is None else f", severity {f['severity']}"
        common = f["pooled"] == COMMON_CORRUPTIONS
        pooled = "" if not f["pooled"] or common else f" ({' + '.join(f['pooled'])})"
        return (
            f"{f['dataset']}{severity}{pooled}, batches of {f['batch_size']}, streams of {f['images']:,} images, "
            f"{self.seeds}"
        )

    @property
    def seeds(self) -> str:
        """How many seeds its cells have."""
        counts = sorted({len(entries) for row in self.rows for entries in row.entries.values()})
        return (
            f"{counts[0]} seed{'s' if counts[0] > 1 else ''}"
            if len(counts) == 1
            else f"{counts[0]} to {counts[-1]} seeds"
        )

    def leader(self, columns: Sequence[str]) -> Row | None:
        """The row that is ahead of every other by more than the interval of the difference, if there is one."""
        scored = [(stat.mean, row) for row in self.rows if (stat := row.average(columns))]
        if len(scored) < 2:
            return None
        top = max(scored, key=lambda pair: pair[0])[1]
        for _, other in scored:
            gain = None if other is top else top.gain_over(other, columns)
            if gain is not None and gain.mean <= (gain.margin or 0.0):
                return None
        return top

    @cached_property
    def source(self) -> Row | None:
        """The row of the model as it came."""
        return next((row for row in self.rows if row.is_source), None)

    @cached_property
    def best_single(self) -> Row | None:
        """The best row that adapts one model: what populations have to beat."""
        scored = [(stat.mean, row) for row in self.rows if row.is_single and (stat := row.average(self.columns))]
        return max(scored, key=lambda pair: pair[0])[1] if scored else None

    def entries(self) -> Iterable[Entry]:
        """All of them, row by row."""
        for row in self.rows:
            for column in self.columns:
                yield from row.entries.get(column, ())
