"""``polytta bench``."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from polytta.lab.bench import Execution, Grid, Options, benchmark, read_grid
from polytta.lab.bench.run_grid import Summary
from polytta.lab.intervals import FEWEST
from polytta.lab.pages.bench.panel import Panel
from polytta.lab.pages.bench.panel_tables import summary_table
from polytta.lab.pages.bench.panels import panels
from polytta.lab.pages.bench.read import entries_of
from polytta.lab.pages.tables import Table, as_text

_ON_PAGES_ONLY = ("Top-5", "NLL", "Brier", "AURC")


@dataclass(frozen=True)
class Bench:
    """Run a grid of adaptation methods over corrupted streams into a folder of records.

    Stopped at any moment, the same command goes on where it was: finished cells are never run again. Images of your own
    that cannot be read are left out and named at the end; the exit code is then 1.
    """

    grid: Annotated[Grid, tyro.conf.arg(name="")] = field(default_factory=Grid)
    config: Path | None = None
    """TOML or YAML file with the grid; flags beside it win over the file."""
    out: Path = Path("polytta-bench")
    """Folder for records and tables."""
    jobs: int | None = None
    """Processes on this machine; by default one per core, or one on a CUDA device (several may share it)."""
    runner: Literal["local", "ray"] = "local"
    """Where cells run: on this machine, or on a Ray cluster."""
    address: str | None = None
    """Of the Ray cluster: auto, or HOST:PORT; without it, one is started here for this run."""
    device: str = "auto"
    """cpu, cuda, cuda:1, ..., or auto: a CUDA device if there is one."""
    engine: str = "auto"
    """How particles are run: the engine of polytta.adapt."""
    fold: Literal["auto", "always", "never"] = "auto"
    """Run cells that differ in stream, seed and learning rate alone as one batch; auto does on a CUDA device."""
    fold_images: int = 1024
    """Most images in such a batch, over all cells and particles."""
    keep_data: bool = True
    """Keep corrupted images in OUT/data, for all processes and for the next run."""
    trackers: tuple[str, ...] = ()
    """Also tell tensorboard or mlflow of every finished cell; OUT/events.jsonl is always written."""

    def run(self) -> int:
        """Runs what is missing and says what came of it; exit code 1 when a cell failed or an image was left out."""
        execution = Execution(self.device, self.engine, self.fold, self.fold_images)
        options = Options(execution, self.jobs, self.runner, self.address, self.trackers, self.keep_data)
        summary = benchmark(self.grid, self.out, options)
        shown = panels(entries_of(summary.records))
        print("".join(f"\n{_panel_text(panel)}\n" for panel in shown))
        print(f"{_sentence(summary)} Table: {(self.out / 'table.csv').resolve()}")
        if summary.records:
            print(f"Next: polytta report {self.out}{_comparison_of(shown, self.out)}")
        for failure in summary.failures:
            print(f"failed: {failure.cell.words}: {failure.sentence}", file=sys.stderr)
        for sentence in summary.left_out:
            print(f"left out: {sentence}", file=sys.stderr)
        return 1 if summary.failures or summary.left_out else 0


def _panel_text(panel: Panel) -> str:
    """The figures of a panel for the terminal; ± is half a 95 % interval, which says where gains are not paired."""
    table = summary_table(panel)
    shown = [number for number, name in enumerate(table.header) if name not in _ON_PAGES_ONLY]
    header = tuple(table.header[number] for number in shown)
    rows = tuple(replace(row, cells=tuple(row.cells[number - 1] for number in shown if number)) for row in table.rows)
    seeds = min((len(entries) for row in panel.rows for entries in row.entries.values()), default=0)
    unpaired = "" if seeds >= FEWEST else ", of gains unpaired (polytta compare pairs rows)"
    return f"{panel.title}: {panel.description}, ± half a 95 % interval{unpaired}\n{as_text(Table(header, rows))}"


def _comparison_of(shown: Sequence[Panel], folder: Path) -> str:
    """A command that pairs the first row with the last, where there are two."""
    rows = list(dict.fromkeys(str(entry.cell["variant"]) for panel in shown for entry in panel.entries()))
    return f"   or: polytta compare {folder} --rows {rows[0]} {rows[-1]}" if len(rows) > 1 else ""


def from_file(arguments: Sequence[str]) -> Bench | None:
    """The command with the grid of the file that --config names, if it names one."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--config", type=Path)
    try:
        file: Path | None = parser.parse_known_args(arguments)[0].config
    except argparse.ArgumentError:  # it names nothing, which the parser of all flags will say
        return None
    return None if file is None else Bench(grid=read_grid(file), config=file)


def _sentence(summary: Summary) -> str:
    failed = f", {len(summary.failures)} failed (see failures/)" if summary.failures else ""
    now, before = summary.finished_now, summary.finished_before
    return f"{now} cell{'s' * (now != 1)} run, {before} {'was' if before == 1 else 'were'} finished before{failed}."
