from dataclasses import fields
from pathlib import Path

import pytest
from torch import nn

from polytta.data.corruption_names import COMMON_CORRUPTIONS
from polytta.diversity import Grad
from polytta.errors import ConfigError, DataError
from polytta.lab.bench import Cell, Grid, read_grid
from polytta.lab.bench.cell import OPTIONS
from polytta.lab.bench.variants import VARIANTS
from polytta.methods import DeYO
from polytta.optim import SGD
from polytta.settings import Settings, resolve

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
    assert [(cell.variant, cell.option("lr")) for cell in rated] == [
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
    config = resolve(cells[0].to_settings(), nn.Sequential(nn.LayerNorm(3)))
    assert config.method == DeYO(entropy_threshold=0.4, plpd_threshold=0.1)
    assert config.diversity == Grad(weight=0.05, form="cosine")
    assert config.optimizers[0] == SGD(momentum=0.5)
    assert config.settings.lr_spread == 0.5
    assert (config.settings.seed, config.settings.batch_size) == (0, 64)


def test_data_that_come_as_they_are_have_one_stream(tmp_path: Path) -> None:
    for dataset in ("waterbirds", f"mine={tmp_path}"):
        (cell,) = Grid(datasets=(dataset,), variants=("source",), severities=(1, 5)).cells()
        assert (cell.corruption, cell.severity) == (None, None)
        assert cell.dataset == dataset.partition("=")[0]


def test_a_row_may_give_every_option_that_the_run_does_not_decide() -> None:
    decided = {"seed", "batch_size", "num_classes", "engine", "populations", "particles_at_once"}
    assert {f.name for f in fields(Settings)} == OPTIONS.keys() | decided
    assert len(fields(Cell)) <= 14


def test_what_a_row_leaves_out_is_the_default_of_adapt() -> None:
    (cell,) = Grid(variants=("naive",), corruptions=("fog",)).cells()
    assert cell.settings == VARIANTS["naive"]
    assert cell.option("particles") is Settings().particles is None
    assert cell.flat()["particles"] == 3
    assert cell.flat()["exclude"] == Settings().exclude


def test_flags_for_all_rows_give_way_to_a_row_and_set_does_not() -> None:
    define = {"mine": {"precision": "tf32", "aggregate": "logits", "lr": 0.1}}
    grid = Grid(variants=("source", "mine"), corruptions=("fog",), precision="bf16", preset="official", define=define)
    source, mine = grid.cells()
    assert (source.option("precision"), source.option("preset")) == ("bf16", "official")
    assert (mine.option("precision"), mine.option("aggregate")) == ("tf32", "logits")
    changed = Grid(**{**vars(grid), "set": ("aggregate=evidence", "precision=fp32"), "lrs": (0.2,)}).cells()
    assert [(cell.option("aggregate"), cell.option("precision")) for cell in changed] == 2 * [("evidence", "fp32")]
    assert [cell.option("lr") for cell in changed] == [None, 0.2]


def test_set_reads_json_lists_and_words() -> None:
    texts = (
        "lenses=unchanged,sharper,mirror:views",
        "lr=1e-3,2e-3",
        "lr_span=4",
        "shared_noise=true",
        'method={"name": "deyo", "plpd_threshold": 0.1}',
        "targets=null",
        "aggregate=evidence",
    )
    row = Grid(variants=("naive",), set=texts).rows()["naive"]
    assert row == {
        "method": {"name": "deyo", "plpd_threshold": 0.1},
        "lenses": ["unchanged", "sharper", "mirror:views"],
        "lr": [1e-3, 2e-3],
        "lr_span": 4,
        "shared_noise": True,
        "targets": None,
        "aggregate": "evidence",
    }


@pytest.mark.parametrize(
    "text",
    [
        'set = ["aggregate=evidence", "lr=[0.1, 0.2, 0.4]", "exclude=4"]',
        '[set]\naggregate = "evidence"\nlr = [0.1, 0.2, 0.4]\nexclude = 4',
    ],
)
def test_set_in_a_file_is_a_list_or_a_table(tmp_path: Path, text: str) -> None:
    (tmp_path / "grid.toml").write_text(f'variants = ["naive"]\n{text}\n')
    row = read_grid(tmp_path / "grid.toml").rows()["naive"]
    assert row == {"method": "deyo", "aggregate": "evidence", "lr": [0.1, 0.2, 0.4], "exclude": 4}


def test_a_part_of_a_table_has_its_name_and_its_own_settings_have_theirs() -> None:
    row = {
        "diversity": {"name": "grad", "weight": 0.1},
        "optimizer": [{"name": "adam", "betas": [0.8, 0.9]}, "sgd"],
        "particles": 2,
    }
    (cell,) = Grid(variants=("a",), corruptions=("fog",), define={"a": row}).cells()
    flat = cell.flat()
    assert (flat["diversity"], flat["diversity.weight"]) == ("grad", 0.1)
    assert (flat["optimizer"], flat["optimizer.0.betas"]) == ("adam+sgd", "0.8+0.9")
    assert Cell.from_dict(cell.to_dict()) == cell


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("colour = 1", "colour"),
        ('seeds = "0"', "seeds"),
        ("seeds = [0.5]", "seeds"),
        ("images = true", "images"),
        ("define = [1]", "define"),
        ("set = 3", "set"),
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
        (Grid(variants=("a",), define={"a": {"speed": 1}}), "variant 'a': got 'speed'; allowed are aggregate, "),
        (Grid(variants=("a",), define={"a": {"seed": 1}}), "variant 'a': got 'seed'; allowed are aggregate, "),
        (Grid(variants=("a",), define={"a": {"engine": "loop"}}), "variant 'a': got 'engine'; allowed are"),
        (Grid(variants=("a",), define={"a": {"method": 3}}), "variant 'a': method: got 3; allowed"),
        (Grid(variants=("a",), define={"a": {"method": {"name": "deyo", "plpd": 0.1}}}), "variant 'a': method: .*plpd"),
        (Grid(variants=("a",), define={"a": {"method": DeYO()}}), "variant 'a': got .*; allowed are names"),
        (Grid(variants=("a",), define={"a": {"lr": float("nan")}}), "variant 'a': got .*nan"),
        (Grid(variants=("a",), define={"a": {"particles": 0}}), "variant 'a': particles: got 0"),
        (Grid(methods=("nowhere:Mine",)), "nowhere"),
        (Grid(set=("colour=red",)), "set: got 'colour'; allowed are aggregate, "),
        (Grid(set=("seed=1",)), "set: got 'seed'; allowed are"),
        (Grid(set=("aggregate",)), "set: got 'aggregate'; allowed is OPTION=VALUE"),
        (Grid(set=("aggregate=evidnce",)), "aggregate: got 'evidnce'"),
        (Grid(set=("lr=NaN",)), "lr: got 'NaN'"),
    ],
)
def test_a_wrong_grid_is_refused_before_anything_runs(grid: Grid, named: str) -> None:
    with pytest.raises(ConfigError, match=named) as refused:
        grid.cells()
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(".")
