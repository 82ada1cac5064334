"""Reads a benchmark's folder: its records, or the tables made from them where only these were kept.

Both give the same entries, to the letter, so that a report made from the tables alone has the same figures. The number
of images is in both the length of the stream, also where the cell asked for all there are.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from polytta.errors import InputError
from polytta.lab.bench.record import CellResults, Record, Times
from polytta.lab.bench.store import read_records
from polytta.lab.bench.table import TABLE, TIMES
from polytta.lab.pages.bench.panel import PANEL_FIELDS, Entry
from polytta.lab.pages.bench.pins import pinned_facts
from polytta.system.json_text import parsed

FACTS = "facts.json"
_WHOLE_NUMBERS = ("severity", "batch_size", "images", "particles", "seed")
_NEEDED = ("key", *PANEL_FIELDS, "corruption", "variant", "seed", "method", "particles", "diversity", "accuracy")
_RESULT_FIELDS = tuple(f.name for f in fields(CellResults) if f.name != "per_corruption")
# Whatever else a table has is of the cell, so that an option that is new is an option here too.
_NOT_OF_THE_CELL = {"key", "data_origin", "stream_sha256", "per_corruption", *_RESULT_FIELDS} - {"images"}
_TIME_FIELDS = tuple(f.name for f in fields(Times))


@dataclass(frozen=True, eq=False)
class Folder:
    """What a folder holds.

    Attributes:
        entries: the plain figures of every cell.
        records: the records by key; empty where only the tables were kept.
        facts: what pins the figures, a sentence each.
    """

    entries: tuple[Entry, ...]
    records: Mapping[str, Record]
    facts: tuple[str, ...]


def read_folder(folder: Path) -> Folder:
    """Everything a report needs; nothing is changed."""
    if (folder / "cells").is_dir():
        records = {record.key: record for record in read_records(folder)}
        entries = entries_of(records.values())
        return Folder(entries, records, tuple(pinned_facts(records.values())))
    if not (folder / TABLE).is_file():
        raise InputError(
            f"DIR: got {folder}, which holds neither cells nor {TABLE}; allowed is a folder that `polytta bench` wrote."
        )
    times = {row["key"]: row for row in _rows(folder / TIMES)} if (folder / TIMES).is_file() else {}
    entries = tuple(_of_rows(row, times.get(row.get("key", ""), {})) for row in _rows(folder / TABLE))
    return Folder(entries, {}, _facts(folder / FACTS))


def entries_of(records: Iterable[Record]) -> tuple[Entry, ...]:
    """The plain figures of records."""
    return tuple(_of_record(record) for record in records)


def _facts(path: Path) -> tuple[str, ...]:
    if not path.is_file():
        return ()
    try:
        return tuple(map(str, parsed(path.read_text("utf-8"))))
    except (ValueError, TypeError) as error:
        raise InputError(
            f"DIR: got {path}, which is no list of facts; allowed is what `polytta report` wrote."
        ) from error


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    except (csv.Error, ValueError) as error:
        raise InputError(
            f"DIR: got {path}, which is no table; allowed is the table that `polytta bench` wrote."
        ) from error


def _of_record(record: Record) -> Entry:
    cell = {name: "" if value is None else str(value) for name, value in record.flat_cell().items()}
    cell["images"] = str(record.results.images)
    return Entry(record.key, _typed(cell), _plain(vars(record.results)), _plain(vars(record.times)))


def _of_rows(row: Mapping[str, str], cost: Mapping[str, str]) -> Entry:
    row = {"lenses": "none", **row}  # tables from before there were lenses
    missing = [name for name in _NEEDED if name not in row]
    if missing:
        raise InputError(
            f"DIR: got a {TABLE} without the column {missing[0]!r}; allowed is the table that `polytta bench` wrote."
        )
    cell = {name: text for name, text in row.items() if name not in _NOT_OF_THE_CELL}
    results = {name: _parsed(row[name]) for name in _RESULT_FIELDS if name in row}
    times = {name: _parsed(cost[name]) for name in _TIME_FIELDS if name in cost and name != "started"}
    return Entry(row["key"], _typed(cell), results, times)


def _typed(cell: Mapping[str, str]) -> dict[str, Any]:
    # A table has a column for the own settings of any row's parts, empty for all other rows.
    kept = {name: text for name, text in cell.items() if text or "." not in name}
    return {name: (int(text) if text else None) if name in _WHOLE_NUMBERS else text for name, text in kept.items()}


def _plain(values: Mapping[str, Any]) -> dict[str, float | None]:
    return {name: value for name, value in values.items() if value is None or isinstance(value, int | float)}


def _parsed(text: str) -> float | None:
    return float(text) if text else None
