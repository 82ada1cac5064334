"""The folder of a benchmark. Whatever moment it is stopped at, what is finished stays finished.

DIR/grid.json               the grid as it was last asked for, and where its datasets lie
DIR/cells/<key>.json        one record per finished cell
DIR/failures/<key>.json     one per cell that could not be run; tried again next time
DIR/left-out.json           images that could not be read, and what is wrong with each
DIR/damaged/                records that could not be read, set aside
DIR/table.csv, .parquet     one line per record: what was run and what came out, and nothing that another run of
                            the same cells would change
DIR/times.csv               one line per record: what it cost, and where
"""

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from polytta.data.corruption_names import CORRUPTIONS
from polytta.errors import InputError, PolyttaWarning, StateError
from polytta.lab.bench.grid import Grid
from polytta.lab.bench.groups import Failure
from polytta.lab.bench.plan import Plan
from polytta.lab.bench.record import Record
from polytta.lab.bench.table import PARQUET, as_parquet, tables_of
from polytta.system.files import write_whole
from polytta.system.json_text import parsed


class Store:
    """Records on disk."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.cells = self.folder / "cells"
        self.failures = self.folder / "failures"

    def open(self, grid: Grid) -> None:
        """Makes the folder and notes the grid in it."""
        try:
            self.cells.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"--out: got {self.folder}, which cannot be made ({error.strerror}); allowed is a folder."
            ) from error
        content = {**grid.to_dict(), "places": {**places_of(self.folder), **grid.places()}}
        write_whole(self.folder / "grid.json", (json.dumps(content, indent=1) + "\n").encode())

    def is_finished(self, plan: Plan) -> bool:
        """Whether the record of a cell is there and whole."""
        path = self.cells / f"{plan.key}.json"
        return path.exists() and self._read(path) is not None

    def save(self, record: Record) -> None:
        """Adds a record."""
        record.write(self.cells)
        (self.failures / f"{record.key}.json").unlink(missing_ok=True)

    def fail(self, failure: Failure) -> None:
        """Notes why a cell has no record."""
        content = {**asdict(failure), "cell": failure.cell.to_dict()}
        write_whole(self.failures / f"{failure.key}.json", (json.dumps(content, indent=1) + "\n").encode())

    def forget(self, failure: Failure) -> None:
        """Takes back a failure whose reason is gone."""
        (self.failures / f"{failure.key}.json").unlink(missing_ok=True)

    def records(self) -> list[Record]:
        """All records in the order of the tables, which is the same whatever order they were finished in."""
        found = (self._read(path) for path in sorted(self.cells.glob("*.json")))
        return sorted((record for record in found if record is not None), key=_place)

    def write_tables(self) -> list[Record]:
        """Makes the tables anew from the records, and returns these."""
        records = self.records()
        for name, content in tables_of(records).items():
            write_whole(self.folder / name, content)
        parquet = as_parquet(records)
        if parquet is not None:
            write_whole(self.folder / PARQUET, parquet)
        return records

    def _read(self, path: Path) -> Record | None:
        try:
            return Record.read(path)
        except StateError as error:
            aside = self.folder / "damaged" / path.name
            aside.parent.mkdir(exist_ok=True)
            path.replace(aside)
            warnings.warn(f"{error} It was moved to {aside} and will be run again.", PolyttaWarning, stacklevel=2)
            return None


def places_of(folder: Path) -> dict[str, str]:
    """Where the datasets of a benchmark lay, by name; nothing where nobody noted it."""
    try:
        places = parsed((folder / "grid.json").read_text("utf-8"))["places"]
        return {str(name): str(path) for name, path in places.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def read_records(place: str | Path) -> list[Record]:
    """The records of a benchmark's folder, or the one in a file; nothing is changed."""
    path = Path(place)
    if path.is_file():
        return [Record.read(path)]
    files = sorted((path / "cells").glob("*.json"))
    if not files:
        raise InputError(f"records: got {path}; allowed are a record and a folder that `polytta bench` wrote.")
    return sorted((Record.read(file) for file in files), key=_place)


def _place(record: Record) -> tuple[Any, ...]:
    cell = record.cell
    numbers = tuple(CORRUPTIONS.index(name) for name in cell.corruptions)
    return (cell.model, cell.dataset, cell.scenario, cell.severity or 0, numbers, cell.variant, cell.seed, record.key)
