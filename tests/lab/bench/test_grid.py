from pathlib import Path

import pytest

from polytta.data.corruption_names import COMMON_CORRUPTIONS
from polytta.diversity import SVGD, Grad
from polytta.errors import ConfigError, DataError
from polytta.lab.bench.grid import Grid
from polytta.lab.bench.grid_file import read_grid
from polytta.lab.bench.variants import adapt_arguments
from polytta.methods import DeYO
from polytta.optim import SGD

TOML = """
models = ["bundled/cifar10_vit_ln"]
corruptions = ["fog"]
scenarios = ["batch1", "mixed"]
variants = ["source", "mine"]
seeds = [0, 1]
lrs = []
images = 30

[define.mine]
method = {name = "deyo", plpd_threshold = 0.1}
particles = 2
diversity = {name = "grad", weight = 0.05, form = "cosine"}
optimizer = [{name = "sgd", momentum = 0.5}, "adam"]
lr_spread = 0.5
"""
YAML = """
models: [bundled/cifar10_vit_ln]
corruptions: [fog]
scenarios: [batch1, mixed]
variants: [source, mine]
seeds: [0, 1]
images: 30
define:
  mine:
    method: {name: deyo, plpd_threshold: 0.1}
    particles: 2
    diversity: {name: grad, weight: 0.05, form: cosine}
    optimizer: [{name: sgd, momentum: 0.5}, adam]
    lr_spread: 0.5
"""


def test_one_stream_per_corruption_or_one_over_all() -> None:
    grid = Grid(scenarios=("batch1", "mixed"), variants=("source", "tent"), severities=(3, 5), seeds=(0, 1, 2))
    cells = grid.cells()
    assert len(cells) == (15 + 1) * 2 * 2 * 3
    pooled = [cell for cell in cells if cell.scenario == "mixed"]
    assert {cell.corruption for cell in pooled} == {COMMON_CORRUPTIONS}
    assert {(cell.scenario, cell.batch_size) for cell in cells} == {("batch1", 1), ("mixed", 64)}


def test_axes_of_rows_multiply_and_labels_tell_them_apart() -> None:
    grid = Grid(variants=("source", "grad_mixed"), methods=("tent",), diversities=("none", "kl"), particles=(2, 4))
    rows = grid.rows()
    mixed = ["grad_mixed particles=2", "grad_mixed particles=4"]
    tents = [f"tent_{kind} particles={count}" for kind in ("naive", "kl") for count in (2, 4)]
    assert list(rows) == ["source", *mixed, *tents]
    assert rows[mixed[1]]["optimizer"] == ["sgd", "adam", "adamw", "sgd"]
    rated = Grid(variants=("source", "deyo"), lrs=(1e-3, 1e-2), corruptions=("fog",)).cells()
    assert [(cell.variant, cell.lr) for cell in rated] == [
        ("source", None),
        ("deyo lr=0.001", 1e-3),
        ("deyo lr=0.01", 1e-2),
    ]


def test_a_cell_that_is_asked_for_twice_is_there_once() -> None:
    assert len(Grid(corruptions=("fog", "fog"), variants=("source",), seeds=(1, 1)).cells()) == 1


@pytest.mark.parametrize(("name", "text"), [("grid.toml", TOML), ("grid.yaml", YAML)])
def test_a_file_is_the_same_grid(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    grid = read_grid(tmp_path / name)
    assert grid.scenarios == ("batch1", "mixed")
    cells = [cell for cell in grid.cells() if cell.variant == "mine" and cell.scenario == "mixed"]
    assert [cell.seed for cell in cells] == [0, 1]
    assert cells[0].corruption == ("fog",)
    assert cells[0].weight == 0.05
    arguments = adapt_arguments(cells[0])
    assert arguments["method"] == DeYO(entropy_threshold=0.4, plpd_threshold=0.1)
    assert arguments["diversity"] == Grad(weight=0.05, form="cosine")
    assert arguments["optimizer"][0] == SGD(momentum=0.5)
    assert arguments["lr_spread"] == 0.5


def test_data_that_come_as_they_are_have_one_stream(tmp_path: Path) -> None:
    for dataset in ("waterbirds", f"mine={tmp_path}"):
        (cell,) = Grid(datasets=(dataset,), variants=("source",), severities=(1, 5)).cells()
        assert (cell.corruption, cell.severity) == (None, None)
        assert cell.dataset == dataset.partition("=")[0]


def test_the_weight_of_svgd_is_its_bandwidth() -> None:
    grid = Grid(variants=("mine",), corruptions=("fog",), define={"mine": {"diversity": "svgd", "weight": "median"}})
    assert adapt_arguments(grid.cells()[0])["diversity"] == SVGD(bandwidth="median")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("colour = 1", "colour"),
        ('seeds = "0"', "seeds"),
        ("seeds = [0.5]", "seeds"),
        ("images = true", "images"),
        ("define = [1]", "define"),
        ("seeds = [", "cannot be read"),
    ],
)
def test_a_wrong_file_is_refused_by_what_is_wrong(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "grid.toml").write_text(text)
    with pytest.raises(ConfigError, match=named) as refused:
        read_grid(tmp_path / "grid.toml")
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.toml"):
        read_grid(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("grid", "named"),
    [
        (Grid(variants=("tnet",)), "tnet"),
        (Grid(corruptions=("rain",)), "rain"),
        (Grid(severities=(6,)), "6"),
        (Grid(scenarios=("wild",)), "wild"),
        (Grid(seeds=()), "seeds"),
        (Grid(seeds=(-1,)), "-1"),
        (Grid(images=0), "images"),
        (Grid(scenarios=("batch1", "mixed"), corruptions=("fog", "clean")), "'clean' for mixed"),
        (Grid(datasets=("mine=a.npz", "mine=b.npz")), "'mine' with more than one file"),
        (Grid(models=("timm/x=a.pth", "timm/x")), "'timm/x' with more than one file"),
        (Grid(variants=("a",), define={"a": {"speed": 1}}), "speed"),
        (Grid(variants=("a",), define={"a": {"method": 3}}), "method"),
        (Grid(variants=("a",), define={"a": {"method": {"name": "deyo", "plpd": 0.1}}}), "plpd"),
    ],
)
def test_a_wrong_grid_is_refused_before_anything_runs(grid: Grid, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        grid.cells()
