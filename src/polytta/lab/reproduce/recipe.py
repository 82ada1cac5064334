"""What a recipe is, and what comes out of one."""

from dataclasses import dataclass
from typing import Protocol

from polytta.lab.bench.grid import Grid
from polytta.lab.bench.record import Record
from polytta.lab.pages.elements import Plot
from polytta.lab.pages.tables import Table
from polytta.lab.reproduce.places import Place


class RunGrid(Protocol):
    """Runs a grid and returns its records."""

    def __call__(self, grid: Grid, *, alone: bool = False) -> list[Record]:
        """``alone``: one cell at a time and nothing else beside it, so that its times are its own."""


@dataclass(frozen=True)
class ResultTable:
    """One table with its title and its remarks."""

    title: str
    table: Table
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reproduction:
    """Everything a recipe shows."""

    tables: tuple[ResultTable, ...]
    plots: tuple[Plot, ...] = ()


class Recipe(Protocol):
    """A table or figure of the paper as something to run."""

    @property
    def name(self) -> str:
        """Its label in the paper."""

    @property
    def shows(self) -> str:
        """What it is about, in a line."""

    @property
    def needs(self) -> str:
        """Data and weights of the full run."""

    def images(self, place: Place) -> int:
        """Images to adapt to in all, each counted once per method and seed."""

    def run(self, place: Place, run_grid: RunGrid) -> Reproduction:
        """Runs it."""
