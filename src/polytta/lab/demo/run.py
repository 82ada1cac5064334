"""Runs the demo's cells as any benchmark's, one process per core, with one progress bar over all of them."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tqdm import tqdm

from polytta.errors import StateError
from polytta.lab.bench.execution import Execution
from polytta.lab.bench.groups import Failure, make_groups, work
from polytta.lab.bench.on_machine import run_on_machine
from polytta.lab.bench.plan import plan_cell
from polytta.lab.bench.record import Record
from polytta.lab.demo.options import DemoOptions
from polytta.system.workers import usable_cores

# Times are compared, and should mean the same everywhere.
EXECUTION = Execution(device="cpu")


@dataclass(frozen=True, eq=False)
class DemoRun:
    """What the demo found: the record of every row on every corruption, and how long it all took."""

    options: DemoOptions
    records: dict[tuple[str, str], Record]
    seconds: float

    def of_row(self, row: str) -> list[Record]:
        """The records of a row, corruption by corruption."""
        return [self.records[row, corruption] for corruption in self.options.corruptions]

    @property
    def first(self) -> Record:
        """Any record, for the facts all of them share."""
        return next(iter(self.records.values()))


def run_demo(options: DemoOptions, keep: Callable[[Record], object] = lambda record: None) -> DemoRun:
    """Runs the comparison; a progress bar shows on stderr. Nothing of an earlier run is used again.

    Args:
        options: what to compare.
        keep: called with each record as soon as there is one.
    """
    start = time.perf_counter()
    groups = make_groups([plan_cell(cell) for cell in options.grid().cells()], EXECUTION)
    records: dict[tuple[str, str], Record] = {}
    with tqdm(total=sum(map(work, groups)), unit="prediction", desc="adapting") as bar:
        for outcomes in run_on_machine(groups, bar.update, EXECUTION, usable_cores()):
            for outcome in outcomes:
                if isinstance(outcome, Failure):
                    raise StateError(
                        f"demo: got a cell that failed, {outcome.cell.words} ({outcome.sentence}); allowed are none."
                    )
                records[outcome.cell.variant, outcome.cell.corruptions[0]] = outcome
                keep(outcome)
    return DemoRun(options, records, time.perf_counter() - start)
