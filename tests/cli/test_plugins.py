"""The parts of CONTRIBUTING.md, in a folder of one's own, through the program: by flags, and by a grid file."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from tests.test_contributing import FILES

GRID = """
models = ["bundled/cifar10_resnet_gn"]
corruptions = ["fog"]
images = 6
lrs = [0.01]
variants = ["taught", "taught_kl", "taught_grad", "mixed"]

[define.taught]
method = {name = "mean_teacher:MeanTeacher", momentum = 0.5}

[define.taught_kl]
method = {name = "mean_teacher:MeanTeacher", momentum = 0.5}
diversity = {name = "kl", weight = 100.0}

[define.taught_grad]
method = {name = "mean_teacher:MeanTeacher", momentum = 0.5}
diversity = {name = "grad", weight = 1.0}

[define.mixed]
method = "confident:Confident"
diversity = {name = "spread:Spread", weight = 0.5}
optimizer = ["lion:Lion", "sgd", "lion:Lion"]
lenses = ["unchanged", "grey:grey", "unchanged"]
aggregate = "cautious:Cautious"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, code in FILES.items():
        (tmp_path / name).write_text(code)
    return tmp_path


def bench(folder: Path, *arguments: str) -> list[dict[str, str]]:
    """Rows of the table that the program writes when it is started in the folder."""
    command = [sys.executable, "-W", "error", "-m", "polytta", "bench", "--out", "out", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    with (folder / "out" / "table.csv").open() as table:
        return list(csv.DictReader(table))


def test_by_flags(folder: Path) -> None:
    rows = bench(
        folder,
        *("--corruptions", "fog", "--images", "6", "--lrs", "0.01", "--variants", "source"),
        *("--methods", "mean_teacher:MeanTeacher", "--diversities", "none", "kl", "spread:Spread"),
        *("--set", "optimizer=lion:Lion", "lenses=unchanged,grey:grey", "aggregate=cautious:Cautious"),
    )
    assert {row["diversity"] for row in rows} == {"none", "kl", "spread:Spread"}
    assert {row["optimizer"] for row in rows} == {"lion:Lion"}
    assert {row["lenses"] for row in rows} == {"unchanged+grey:grey"}
    assert len({row["nll"] for row in rows if row["method"] == "mean_teacher:MeanTeacher"}) == 3


def test_by_a_grid_file(folder: Path) -> None:
    (folder / "grid.toml").write_text(GRID)
    rows = {row["variant"]: row for row in bench(folder, "--config", "grid.toml")}
    assert set(rows) == {"taught", "taught_kl", "taught_grad", "mixed"}
    assert len({rows[name]["nll"] for name in ("taught", "taught_kl", "taught_grad")}) == 3, "diversity reaches it"
    assert rows["mixed"]["optimizer"] == "lion:Lion+sgd+lion:Lion"
