"""Records laid out as the paper does: a panel per model and scenario, methods as rows, corruptions as columns.

Everything here is worked out from a record's plain figures, so that a table of them is as good as the records.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from polytta.data.corruption_names import COMMON_CORRUPTIONS, CORRUPTIONS
from polytta.diversity import DIVERSIFIERS
from polytta.errors import InputError
from polytta.lab.bench.grid import POOLED
from polytta.methods import METHODS

PANEL_FIELDS = ("dataset", "model", "scenario", "severity", "batch_size", "images")
ALL = "all"
_NOT_SETTINGS = (*PANEL_FIELDS, "corruption", "seed", "variant")
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


@dataclass(frozen=True)
class Stat:
    """A mean over seeds and, with two or more, its sample standard deviation."""

    mean: float
    std: float | None
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Stat":
        """Of at least one value."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else None, len(values))


@dataclass(frozen=True, eq=False)
class Row:
    """One method over the columns of a panel; ``entries`` of a column differ in their seeds alone."""

    name: str
    settings: Mapping[str, Any]
    entries: Mapping[str, tuple[Entry, ...]]

    @property
    def is_source(self) -> bool:
        """Whether it is the model as it came, looking at the images as they come."""
        looks = (self.settings.get("views", "none"), self.settings.get("lenses", "none"))
        return not self.adapts and self.settings["particles"] == 1 and looks == ("none", "none")

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
        values = [e.results.get(measure) for e in self.entries.get(column, ())]
        known = [float(value) for value in values if value is not None]
        return Stat.of(known) if known and len(known) == len(values) else None

    def average(self, columns: Sequence[str], measure: str = "accuracy") -> Stat | None:
        """Over columns, then over seeds; None while a column is missing."""
        per_column = [self.stat(column, measure) for column in columns]
        if not columns or any(stat is None for stat in per_column):
            return None
        mean = fmean(stat.mean for stat in per_column if stat is not None)
        by_seed = [{e.cell["seed"]: float(e.results[measure]) for e in self.entries[column]} for column in columns]
        shared = sorted(set.intersection(*(set(values) for values in by_seed)))
        per_seed = [fmean(values[seed] for values in by_seed) for seed in shared]
        return Stat(mean, stdev(per_seed) if len(per_seed) > 1 else None, len(shared))

    @property
    def speed(self) -> float | None:
        """Images per second over all its entries."""
        timed = [e.times for each in self.entries.values() for e in each if e.times.get("wall_seconds")]
        seconds = sum(float(t["wall_seconds"]) for t in timed)
        images = sum(float(t["wall_seconds"]) * float(t["images_per_second"]) for t in timed)
        return images / seconds if seconds else None


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
        return "-".join(parts).replace("/", "-").replace("_", "-").lower()

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


def panels(entries: Iterable[Entry]) -> tuple[Panel, ...]:
    """Sorts records into panels, rows and columns; the order they come in does not matter."""
    grouped: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: e.key):
        pooled = entry.corruptions if entry.column == ALL else ()
        grouped.setdefault((*(entry.cell[name] for name in PANEL_FIELDS), pooled), []).append(entry)
    made = [
        _panel(dict(zip((*PANEL_FIELDS, "pooled"), values, strict=True)), members)
        for values, members in grouped.items()
    ]
    scenarios = list(SCENARIO_NAMES)
    return tuple(
        sorted(
            made,
            key=lambda p: (
                str(p.fields["dataset"]),
                str(p.fields["model"]),
                scenarios.index(p.fields["scenario"]) if p.fields["scenario"] in scenarios else len(scenarios),
                p.anchor,
            ),
        )
    )


def _panel(fields: Mapping[str, Any], entries: Sequence[Entry]) -> Panel:
    rows: dict[str, list[Entry]] = {}
    for entry in entries:
        rows.setdefault(_identity(entry), []).append(entry)
    settings = {identity: _settings(members[0]) for identity, members in rows.items()}
    names = _names({identity: members[0].cell["variant"] for identity, members in rows.items()}, settings)
    made = [Row(names[identity], settings[identity], _by_column(members)) for identity, members in rows.items()]
    known = {name: place for place, name in enumerate(CORRUPTIONS)}
    columns = sorted({e.column for e in entries}, key=lambda name: (known.get(name, len(known)), name))
    return Panel(fields, tuple(columns), tuple(sorted(made, key=_row_order)))


def _settings(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in sorted(entry.cell.items()) if name not in _NOT_SETTINGS}


def _identity(entry: Entry) -> str:
    return repr((entry.cell["variant"], _settings(entry)))


def _names(variants: Mapping[str, str], settings: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The variant, and where two rows share one, the settings in which they differ."""
    names = {}
    for identity, variant in variants.items():
        namesakes = [other for other, name in variants.items() if name == variant]
        apart = [
            f"{key}={value}"
            for key, value in settings[identity].items()
            if any(settings[other].get(key) != value for other in namesakes)
        ]
        names[identity] = f"{variant} ({', '.join(apart)})" if apart else variant
    return names


def _by_column(entries: Sequence[Entry]) -> dict[str, tuple[Entry, ...]]:
    columns: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: (e.cell["seed"], e.key)):
        members = columns.setdefault(entry.column, [])
        if members and members[-1].cell["seed"] == entry.cell["seed"]:
            raise InputError(
                f"records: {members[-1].key} and {entry.key} are of one cell ({entry.cell['variant']}, {entry.column}, "
                f"seed {entry.cell['seed']}), made with other weights, data or protocol; allowed is one."
            )
        members.append(entry)
    return {name: tuple(members) for name, members in columns.items()}


def _row_order(row: Row) -> tuple[Any, ...]:
    s = row.settings
    methods, diversities = list(METHODS), list(DIVERSIFIERS)
    return (
        s["particles"] > 1,
        methods.index(s["method"]) if s["method"] in methods else len(methods),
        diversities.index(s["diversity"]) if s["diversity"] in diversities else len(diversities),
        str(s.get("optimizer")) != "sgd",
        str(s.get("views")) != "none",
        str(s.get("lenses")) != "none",
        row.name,
    )
