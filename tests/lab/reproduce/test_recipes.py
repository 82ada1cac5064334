"""Every recipe, on the bundled data: that it runs, and that what it shows is what its records say."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.lab.bench.networks import TINY

from polytta.lab.bench import Execution, Grid, Options, read_records
from polytta.lab.pages.stat import Stat
from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.published import published_rows
from polytta.lab.reproduce.published_comparison import comparison_table
from polytta.lab.reproduce.recipe import Reproduction, RunGrid
from polytta.lab.reproduce.recipes import RECIPES
from polytta.lab.reproduce.run import MARKDOWN, PAGE, reproduce

QUICK = Place(None, quick=True)
# The labels of the paper that have to be here.
NAMES = [
    "tab:multiseed_deyo_b1",
    "tab:imagenet-c",
    "tab:imagenet-c-mix-shift",
    "tab:noAug",
    "tab:augoptim",
    "tab:watt",
    "fig:lambda",
    "fig:particles",
    "tab:tent-grad",
    "tab:extended_shifts",
    "tab:cifar-c",
    "tab:imagenet-c-mild",
    "tab:imagenet-sev3",
    "tab:runtime",
    "fig:interpolation",
]


def run(name: str, folder: Path) -> Reproduction:
    return reproduce(RECIPES[name], QUICK, folder, Options(jobs=1, progress=False, keep_data=False))


@dataclass(frozen=True)
class Twice:
    """One row with two seeds, which would share a batch if it may."""

    alone: bool
    name: str = "twice"
    shows: str = "nothing"
    needs: str = "nothing"

    def images(self, place: Place) -> int:
        return 8

    def run(self, place: Place, run_grid: RunGrid) -> Reproduction:
        grid = Grid(models=(TINY,), corruptions=("fog",), variants=("source",), seeds=(0, 1), images=4)
        run_grid(grid, alone=self.alone)
        return Reproduction(())


@pytest.mark.parametrize(("alone", "together"), [(False, 2), (True, 1)])
def test_cells_whose_times_count_run_alone(alone: bool, together: int, tmp_path: Path) -> None:
    options = Options(Execution(fold="always"), jobs=2, progress=False, keep_data=False)
    reproduce(Twice(alone), QUICK, tmp_path, options)
    assert {record.times.folded_cells for record in read_records(tmp_path)} == {together}


def test_every_table_and_figure_has_a_recipe() -> None:
    assert list(RECIPES) == NAMES


# Run once, by the test below that says more of it.
LONG = "tab:watt"


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in NAMES if name != LONG])
def test_recipe_on_bundled_data(name: str, tmp_path: Path) -> None:
    _check_all_is_shown(run(name, tmp_path), tmp_path)


def _check_all_is_shown(reproduced: Reproduction, tmp_path: Path) -> None:
    page, document = (tmp_path / PAGE).read_text(), (tmp_path / MARKDOWN).read_text()
    for result in reproduced.tables:
        assert result.table.rows
        assert result.title in document
        assert all(row.name.strip() in page for row in result.table.rows)
        assert not any("difference" in row.name for row in result.table.rows), "other images, and few of them"
    assert page.count("<svg") == len(reproduced.plots)


def test_differences_are_told_of_the_papers_own_data_alone() -> None:
    rows = published_rows("tab:tent-grad")
    measured = {(row.method, "average"): Stat(50.0, None, 1) for row in rows}
    for place, differences in ((Place(Path()), len(rows)), (Place(), 0), (Place(Path(), quick=True), 0)):
        table = comparison_table("t", rows, ("average",), measured, place).table
        told = [row for row in table.rows if row.name.endswith("difference")]
        assert len(told) == differences
    (first, *_) = comparison_table("t", rows, ("average",), measured, Place(Path())).table.rows[2].cells
    assert float(first.text) == pytest.approx(50 - rows[0].figures["average"].value, abs=0.06)


def test_table_shows_what_the_records_say(tmp_path: Path) -> None:
    reproduced = run("tab:tent-grad", tmp_path)
    accuracy = {record.cell.variant: record.results.accuracy for record in read_records(tmp_path)}
    shown = {row.name: row.cells[0].text for row in reproduced.tables[0].table.rows}
    assert float(shown["Tent + Grad"]) == pytest.approx(accuracy["tent_grad"], abs=0.05)
    assert float(shown["No adapt"]) == pytest.approx(accuracy["source"], abs=0.05)


def test_finished_cells_are_found_again(tmp_path: Path) -> None:
    first = run("tab:runtime", tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    assert run("tab:runtime", tmp_path) == first
    assert stamps == {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}


@pytest.mark.long
def test_watt_runs_all_but_what_needs_a_diffusion_model(tmp_path: Path) -> None:
    reproduced = run(LONG, tmp_path)
    _check_all_is_shown(reproduced, tmp_path)
    (result,) = reproduced.tables
    measured = {row.name: row.cells[0].text for row in result.table.rows}
    assert measured["DiffTPT"] == "-"
    assert any("DiffTPT was not run" in remark for remark in result.remarks)
    accuracy = {record.cell.variant: record.results.accuracy for record in read_records(tmp_path)}
    for method, row in (("CLIP", "source"), ("WATT-P", "watt_p"), ("WATT-S+Aug+Reg.", "watt_s_aug_grad")):
        assert float(measured[method]) == pytest.approx(accuracy[row], abs=0.05)
    assert len([row for row in result.table.rows if row.name.endswith("published")]) == 11


def test_watt_is_shortened_on_bundled_data_alone() -> None:
    (block,) = RECIPES["tab:watt"].blocks
    full, bundled = (block.define_at(place) for place in (Place(Path(".")), Place()))
    assert full == {}
    assert {name: row["method"] for name, row in bundled.items()} == {"watt_p": {"name": "watt_p", "rounds": 5}}
    assert (block.grid(Place()).images, block.grid(Place()).batch_size) == (40, 20)
    real = block.grid(Place(Path(".")))
    assert (real.images, real.batch_size) == (None, 128)
    rows = real.rows()
    assert rows["watt_p"]["method"] == "watt_p"
    assert rows["clip_tent"]["episodic"]


@pytest.mark.parametrize("name", NAMES)
def test_every_published_row_has_something_to_run(name: str) -> None:
    """A method the grid does not know would only be noticed on the paper's data."""
    for block in getattr(RECIPES[name], "blocks", ()):
        rows = published_rows(name, block.block, block.backbone)
        assert [row.method for row in rows if row.method not in block.not_run] == list(block.rows)
        assert all(set(block.corruptions) | {"average"} == set(row.figures) for row in rows)
        assert re.fullmatch(r"[\w ,/()-]+", block.title)
