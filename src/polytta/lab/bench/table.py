"""The tables of a benchmark: what was run and what came out, and what it cost, one line per record."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from polytta.lab.bench.record import Record

TABLE = "table.csv"
PARQUET = "table.parquet"
TIMES = "times.csv"


def tables_of(records: Sequence[Record]) -> dict[str, bytes]:
    """The tables of some records by the names of their files."""
    return {TABLE: _as_csv(map(_row, records)), TIMES: _as_csv(map(_cost, records))}


def as_parquet(records: Sequence[Record]) -> bytes | None:
    """The same as ``table.csv``; None where there is nothing to tell, or pyarrow is not installed."""
    if not records or find_spec("pyarrow") is None:
        return None
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    rows = [_row(record) for record in records]
    columns = {name: [row.get(name) for row in rows] for name in _columns(rows)}
    # A column may hold numbers in one row and a name in another (a bandwidth, a rate per particle).
    mixed = {name for name, values in columns.items() if len({type(value) for value in values} - {type(None)}) > 1}
    plain = {name: list(map(_text, values)) if name in mixed else values for name, values in columns.items()}
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table(plain), sink)
    return sink.getvalue()


def _row(record: Record) -> dict[str, Any]:
    """Values of a record that every run of its cell gives."""
    results = record.results
    return {
        "key": record.key,
        **record.flat_cell(),
        "data_origin": record.pins["data_origin"],
        "stream_sha256": record.pins["stream"]["sha256"],
        **{name: value for name, value in vars(results).items() if not isinstance(value, tuple | Mapping)},
        "per_corruption": " ".join(map(str, results.per_corruption)) or None,
        "drift": sum(results.drift) / len(results.drift),
        "stepped": sum(results.stepped),
        "resets": sum(results.resets),
        "selected": sum(list(results.selected.values())[-1]) if results.selected else None,
    }


def _cost(record: Record) -> dict[str, Any]:
    cell = record.cell.flat()
    named = {name: cell[name] for name in ("model", "dataset", "corruption", "scenario", "variant", "seed")}
    return {"key": record.key, **named, **vars(record.times), **record.environment}


def _columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names in the order they come, those of a part's own settings last: not every row has them."""
    names = dict.fromkeys(name for row in rows for name in row)
    return sorted(names, key=lambda name: "." in name)


def _as_csv(rows: Iterable[Mapping[str, Any]]) -> bytes:
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, _columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
