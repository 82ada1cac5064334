"""Cells on a tiny network, and a way to run them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.lab.bench.networks import TINY
from tests.lab.bench.records import CELL

from polytta.lab.bench.cell import Cell
from polytta.lab.bench.execution import Execution
from polytta.lab.bench.plan import plan_cell
from polytta.lab.bench.record import Record
from polytta.lab.bench.run import run_group
from polytta.lab.bench.variants import VARIANTS


def tiny_cell(variant: str = "grad", settings: dict[str, Any] | None = None, **change: Any) -> Cell:
    """A row on a network that makes a cell in no time."""
    own = {**VARIANTS[variant], "lr": 0.02}
    if own.get("method") == "deyo":  # thresholds that an untrained network passes now and then
        own["method"] = {"name": "deyo", "entropy_threshold": 0.9, "plpd_threshold": -0.2}
    own.update(settings or {})
    return replace(CELL, **{"variant": variant, "settings": own, "model": TINY, "images": 24, **change})


def run_cells(cells: Sequence[Cell], report: Callable[[int], object] = lambda images: None) -> list[Record]:
    """Runs cells as one group."""
    return run_group([plan_cell(cell) for cell in cells], report, Execution())


def run_cell(cell: Cell) -> Record:
    """Runs a cell alone."""
    return run_cells([cell])[0]
