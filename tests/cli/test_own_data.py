"""A folder of one's own images and a model of one's own: corrupted, benchmarked and reported."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.cli.program import polytta, refusal
from tests.lab.bench.networks import TINY

from polytta.cli import main
from polytta.data.corruptions import corrupt
from polytta.data.corruptions.writer import stable_image_id
from polytta.data.datasets.cut import cut
from polytta.lab.bench.grid import Grid
from polytta.lab.bench.plan import plan_cell
from polytta.lab.bench.store import read_records

CLASSES = tuple("abcdefghij")
MODEL = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.GroupNorm(2, 8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                            nn.Linear(8, 10))
    network.pretrained_cfg = {"input_size": (3, 32, 32), "mean": (0.5,) * 3, "std": (0.25,) * 3, "num_classes": 10}
    return network
"""


def pictures(folder: Path, classes: tuple[str, ...] = CLASSES, each: int = 2, size: tuple[int, int] = (90, 70)) -> Path:
    rng = np.random.default_rng(0)
    for name in classes:
        (folder / name).mkdir(parents=True)
        for number in range(each):
            pixels = rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "table.csv").open() as lines:
        return list(csv.DictReader(lines))


def test_what_corrupt_wrote_is_benchmarked_and_reported_with_corruption_and_severity(tmp_path: Path) -> None:
    pictures(tmp_path / "pets", each=1)
    (tmp_path / "mymodel.py").write_text(MODEL)
    written = polytta(
        *("corrupt", "pets", "pets-c", "--set", "imagenet", "--types", "fog", "contrast"),
        *("--severity", 3, "--workers", 1),
        cwd=tmp_path,
    )
    assert written.returncode == 0, written.stderr
    assert "polytta bench --datasets pets-c" in written.stdout
    run = ("bench", "--models", "mymodel:make", "--severities", 3, "--variants", "source", "--jobs", 1)
    for number, name in enumerate(("pets-c", "mine=pets-c", "imagenet-c=pets-c")):
        done = polytta(*run, "--datasets", name, "--out", f"out{number}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        rows = table(tmp_path / f"out{number}")
        assert {row["dataset"] for row in rows} == {name.partition("=")[0]}
        assert {(row["corruption"], row["severity"], row["images"]) for row in rows} == {
            ("fog", "3", "10"),
            ("contrast", "3", "10"),
        }
        assert {row["data_origin"] for row in rows} == {"generated"}
    assert main(["report", str(tmp_path / "out0")]) == 0
    assert "pets-c, severity 3" in (tmp_path / "out0/results.md").read_text()
    page = (tmp_path / "out0/report.html").read_text()
    assert "An image of pets-c, as the models got it." in page
    assert "bundled CIFAR-10" not in page
    assert page.count('width="160" height="160"') == 2


def test_arrays_that_corrupt_wrote_are_read_back_under_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("mine.npz", x=rng.integers(0, 256, (20, 32, 32, 3), dtype=np.uint8), y=np.arange(20) % 10)
    assert main(["corrupt", "mine.npz", "mine-c", "--set", "cifar", "--types", "fog", "--workers", "1"]) == 0
    arguments = ["--models", TINY, "--variants", "source", "--jobs", "1", "--severities", "2"]
    assert main(["bench", "--datasets", "mine-c", "--out", "out", *arguments]) == 0
    (row,) = table(tmp_path / "out")
    assert (row["dataset"], row["corruption"], row["severity"]) == ("mine-c", "fog", "2")


def test_corruptions_of_an_image_folder_are_made_as_corrupt_makes_them(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "pets", each=1, size=(300, 260))
    grid = Grid(models=(TINY,), datasets=(str(folder),), corruptions=("clean", "contrast"), variants=("source",))
    clean, corrupted = (plan_cell(cell) for cell in grid.cells())
    assert clean.pins["data_origin"] == "own"
    assert corrupted.pins["data_origin"] == "generated"
    assert corrupted.cell.corruption == "contrast"
    assert corrupted.pins["data"]["constants"] == "imagenet"
    from polytta.lab.bench.data import open_cell_stream

    (domain,) = open_cell_stream(corrupted.cell).datasets
    with Image.open(folder / "c/0.png") as stored:
        picture = cut(np.array(stored), 256, 224)
    expected = corrupt(picture[None], "contrast", 5, ids=[stable_image_id(folder / "c/0.png")])[0]
    assert (domain[2][0] == expected).all()
    assert domain[2][1] == 2


def test_small_images_of_a_folder_keep_their_size_and_have_the_constants_of_cifar(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "small", each=1, size=(32, 32))
    grid = Grid(models=(TINY,), datasets=(f"mine={folder}",), corruptions=("fog",), variants=("source",))
    (cell,) = grid.cells()
    assert plan_cell(cell).pins["data"]["constants"] == "cifar"


def test_a_folder_nobody_said_anything_of_is_used_as_it_is_and_is_not_official(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "pets")
    arguments = ["--models", TINY, "--variants", "source", "--jobs", "1", "--out", str(tmp_path / "out")]
    assert main(["bench", "--datasets", str(folder), *arguments]) == 0
    (row,) = table(tmp_path / "out")
    assert (row["corruption"], row["data_origin"], row["images"]) == ("", "own", "20")


def test_no_attack_is_judged_by_labels_that_the_model_does_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = pictures(tmp_path / "pets", ("cat", "dog", "ship"))
    assert main(["attack", "--models", TINY, "--dataset", str(folder), "--attacks", "nan", "--images", "6"]) == 2
    sentence = capsys.readouterr().err.replace("\r", "\n").splitlines()[-1]
    assert "dataset: got" in sentence
    assert "3 classes (cat, dog, ship), for the 10 of" in sentence


def test_three_classes_are_not_taken_for_the_first_of_ten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pictures(tmp_path / "pets", ("cat", "dog", "ship"))
    arguments = ["--models", TINY, "--variants", "source", "--out", str(tmp_path / "out")]
    assert main(["bench", "--datasets", str(folder), *arguments]) == 2
    sentence = capsys.readouterr().err.replace("\r", "\n").splitlines()[-1]
    assert "3 classes (cat, dog, ship), for" in sentence
    assert "the 10 of" in sentence
    whole = pictures(tmp_path / "whole", ("x", "y", "z"))
    for name in CLASSES[:7]:
        (whole / name).mkdir()
    assert main(["bench", "--datasets", str(whole), *arguments]) == 0
    (record,) = read_records(tmp_path / "out")
    assert [value is not None for value in record.results.per_class] == [False] * 7 + [True] * 3


def test_a_broken_image_is_named_and_costs_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pictures(tmp_path / "pets", ("cat", "dog"))
    broken = folder / "cat/0.png"
    broken.write_bytes(broken.read_bytes()[:200])
    arguments = [
        "corrupt",
        str(folder),
        str(tmp_path / "out"),
        "--set",
        "imagenet",
        "--types",
        "fog",
        "--severity",
        "1",
    ]
    assert main([*arguments, "--workers", "1"]) == 1
    said = capsys.readouterr()
    (line,) = [line for line in said.err.replace("\r", "\n").splitlines() if line.startswith("left out: ")]
    assert str(broken) in line
    written = {path.relative_to(tmp_path / "out/fog/1").as_posix() for path in (tmp_path / "out").rglob("*.JPEG")}
    assert written == {"cat/1.JPEG", "dog/0.JPEG", "dog/1.JPEG"}
    marker = json.loads((tmp_path / "out/polytta-generated.json").read_text())
    assert marker["complete"] == {"fog": [1]}
    assert marker["classes"] == ["cat", "dog"]


def test_corrupt_refuses_a_folder_for_cifar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pictures(tmp_path / "pets", ("cat",))
    sentence = refusal(capsys, "corrupt", folder, tmp_path / "out", "--set", "cifar")
    assert str(folder) in sentence
    assert "--set imagenet" in sentence


def test_weights_that_are_missing_are_asked_for_as_the_command_takes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--models", "timm/resnet18.a1_in1k", "--out", str(tmp_path)]) == 2
    assert "timm/resnet18.a1_in1k=FILE" in capsys.readouterr().err


def test_help_of_bench_says_what_a_model_of_ones_own_must_tell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    said = capsys.readouterr().out
    for word in ("pretrained_cfg", "input_size", "mean", "std", "num_classes", "SourceModel"):
        assert word in said


def test_a_folder_by_its_path_is_studied_and_attacked_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pictures(tmp_path / "pets", size=(32, 32))
    small = ("--images", "8", "--judged-on", "4")
    study = ("study", "underspecification", "--model", TINY, "--dataset", str(folder), "--corruption", "fog")
    assert main([*study, *small, "--seeds", "0", "1", "--out", str(tmp_path / "out")]) == 0
    attack = ("attack", "--models", TINY, "--dataset", str(folder), "--attacks", "clean", "--methods", "tent")
    assert main([*attack, *small, "--steps", "1", "--batch-size", "4", "--guards", "off"]) == 0
    assert "nothing lies" not in capsys.readouterr().err
