"""Rows of the CLIP grid on a toy CLIP: cells run as one batch are the cells run alone, whatever is remembered."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.lab.bench.cells import run_cell, run_cells, tiny_cell
from tests.lab.bench.test_populations import assert_same

from polytta.errors import ConfigError, InputError
from polytta.lab.bench import read_grid
from polytta.lab.bench.cell import Cell, part_name
from polytta.lab.bench.execution import Execution
from polytta.lab.bench.groups import make_groups
from polytta.lab.bench.plan import plan_cell
from polytta.lab.bench.variants import checked

READING = "tests.lab.bench.networks:reading"
GRID = read_grid(Path(__file__).parents[3] / "benchmarks/grids/clip_batch128.toml")
# The same methods with less of everything; thresholds that a toy passes now and then.
SHORTER: dict[str, dict[str, Any]] = {
    "watt_s": {"steps": 1, "rounds": 1},
    "watt_p": {"steps": 1, "rounds": 2},
    "clipartt": {"steps": 2},
    "tpt": {"views": 3, "share": 0.5},
    "deyo": {"entropy_threshold": 0.9, "plpd_threshold": -0.2},
}


def shorter(row: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in row.items() if name != "precision"}
    method = given.get("method")
    if method is not None:
        own = dict(method) if isinstance(method, Mapping) else {"name": method}
        given["method"] = {**own, **SHORTER.get(part_name(method), {})}
    return {**given, "steps": min(2, given.get("steps", 1))} if "steps" in given else given


def cell(label: str, **change: Any) -> Cell:
    row = checked(label, shorter(GRID.rows()[label]))
    own = tiny_cell(variant="source", scenario="mild", batch_size=4, images=10, model=READING, **change)
    return replace(own, settings=row, variant=label)


@pytest.mark.parametrize("label", GRID.variants)
def test_cells_of_a_row_are_one_run_and_the_same_records(label: str) -> None:
    cells = [cell(label), cell(label, seed=1), cell(label, corruption="snow")]
    assert [len(group) for group in make_groups([plan_cell(one) for one in cells], Execution(fold="always"))] == [3]
    for one, alone in zip(run_cells(cells), cells, strict=True):
        assert_same(one, run_cell(alone))


def test_a_record_pins_the_text_that_images_are_compared_with() -> None:
    pinned = plan_cell(cell("watt_s")).pins["model"]
    assert pinned["templates"] == ["a photo of a {}", "a bad picture of the {}."]
    assert len(pinned["classes"]) == 10


def test_a_row_of_own_templates_is_known_by_as_many_particles_and_told_of_in_tables() -> None:
    settings = {"prompts": "own", "aggregate": "evidence"}
    one = replace(cell("source"), settings=checked("own", settings), variant="own")
    assert plan_cell(one).particles == 2
    assert run_cell(one).flat_cell()["particles"] == 2
    with pytest.raises(ConfigError, match="which has no text"):
        plan_cell(replace(one, model="tests.lab.bench.networks:tiny"))


def archive(folder: Path, classes: int) -> str:
    images = np.zeros((classes, 32, 32, 3), np.uint8)
    np.savez(folder / "mine.npz", x=images, y=np.arange(classes))
    return str(folder / "mine.npz")


def reader(dataset: str, path: str) -> Cell:
    return replace(cell("source"), model="bundled/mini_clip", dataset=dataset, data_path=path, images=4)


def test_a_model_that_reads_is_given_the_names_of_the_dataset(tmp_path: Path) -> None:
    pinned = plan_cell(reader("cifar100", archive(tmp_path, 100))).pins["model"]
    assert (pinned["num_classes"], pinned["classes"][:2]) == (100, ["apple", "aquarium fish"])
    assert plan_cell(reader("cifar10", archive(tmp_path, 10))).pins["model"]["classes"][0] == "airplane"


def test_numbers_are_no_class_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="whose classes have no names"):
        plan_cell(reader("mine", archive(tmp_path, 4)))
    for name in ("n01440764", "n01443537"):
        (tmp_path / "folder" / name).mkdir(parents=True)
        Image.new("RGB", (32, 32)).save(tmp_path / "folder" / name / "one.png")
    ids = replace(reader("folder", str(tmp_path / "folder")), images=2, corruption=None, severity=None)
    with pytest.raises(InputError, match="whose classes have no names"):
        plan_cell(ids)
