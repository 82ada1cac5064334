"""Sorts records into panels: one per model and scenario, whatever order the records come in."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polytta.data.corruption_names import CORRUPTIONS
from polytta.diversity import DIVERSIFIERS
from polytta.errors import InputError
from polytta.lab.bench.labels import distinct_names
from polytta.lab.pages.bench.panel import ALL, PANEL_FIELDS, SCENARIO_NAMES, Entry, Panel, Row
from polytta.methods import METHODS

_NOT_SETTINGS = (*PANEL_FIELDS, "corruption", "seed", "variant")


def panels(entries: Iterable[Entry]) -> tuple[Panel, ...]:
    """Sorts records into panels, rows and columns; the order they come in does not matter."""
    grouped: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: e.key):
        pooled = entry.corruptions if entry.column == ALL else ()
        grouped.setdefault((*(entry.cell[name] for name in PANEL_FIELDS), pooled), []).append(entry)
    found = [
        _panel(dict(zip((*PANEL_FIELDS, "pooled"), values, strict=True)), members)
        for values, members in grouped.items()
    ]
    scenarios = list(SCENARIO_NAMES)
    return tuple(
        sorted(
            found,
            key=lambda p: (
                str(p.fields["dataset"]),
                str(p.fields["model"]),
                scenarios.index(p.fields["scenario"]) if p.fields["scenario"] in scenarios else len(scenarios),
                p.anchor,
            ),
        )
    )


def _panel(fields: Mapping[str, Any], entries: Sequence[Entry]) -> Panel:
    members: dict[str, list[Entry]] = {}
    for entry in entries:
        members.setdefault(repr((entry.cell["variant"], _settings(entry))), []).append(entry)
    own = list(members.values())
    settings = [_settings(one[0]) for one in own]
    names = distinct_names([one[0].cell["variant"] for one in own], settings)
    rows = [Row(name, chosen, _by_column(one)) for name, chosen, one in zip(names, settings, own, strict=True)]
    known = {name: place for place, name in enumerate(CORRUPTIONS)}
    columns = sorted({e.column for e in entries}, key=lambda name: (known.get(name, len(known)), name))
    return Panel(fields, tuple(columns), tuple(sorted(rows, key=_row_order)))


def _settings(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in sorted(entry.cell.items()) if name not in _NOT_SETTINGS}


def _by_column(entries: Sequence[Entry]) -> dict[str, tuple[Entry, ...]]:
    columns: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: (e.cell["seed"], e.key)):
        members = columns.setdefault(entry.column, [])
        if members and members[-1].cell["seed"] == entry.cell["seed"]:
            raise InputError(
                f"records: got {members[-1].key} and {entry.key} of one cell ({entry.cell['variant']}, {entry.column}, "
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
