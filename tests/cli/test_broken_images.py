"""A folder in which some images cannot be read: named, left out, and everything else is run."""

import shutil
from pathlib import Path

import pytest
from tests.cli.test_own_data import pictures
from tests.lab.bench.networks import TINY

from polytta.cli import main
from polytta.lab.bench.store import read_records


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = pictures(tmp_path / "pets", each=3, size=(32, 32))
    for name in ("a/0.png", "c/1.png"):  # the first of all tells how large images are
        (made / name).write_bytes((made / name).read_bytes()[:200])
    return made


def bench(folder: Path, *more: str) -> int:
    rows = (
        "--variants",
        "source",
        "tent",
        "--scenarios",
        "mild",
        "--batch-size",
        "8",
        "--jobs",
        "1",
        "--device",
        "cpu",
    )
    return main(
        ["bench", "--models", TINY, "--datasets", str(folder), *rows, "--out", str(folder.parent / "out"), *more]
    )


@pytest.mark.parametrize("corruptions", [(), ("--corruptions", "fog", "contrast")])
def test_broken_images_are_named_and_left_out(
    folder: Path, capsys: pytest.CaptureFixture[str], corruptions: tuple[str, ...]
) -> None:
    assert bench(folder, *corruptions) == 1
    said = capsys.readouterr().err
    assert [line.partition(":")[2].split(":")[0].strip() for line in said.splitlines() if "left out" in line] == [
        str(folder / "a/0.png"),
        str(folder / "c/1.png"),
    ]
    records = read_records(folder.parent / "out")
    assert {record.results.images for record in records} == {28}
    assert len(records) == 2 * max(1, len(corruptions) - 1)
    assert not list((folder.parent / "out/failures").glob("*"))


def test_records_are_those_of_the_folder_without_them_and_nothing_is_run_twice(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench(folder)
    assert bench(folder) == 1
    assert "0 cells run, 2 were finished before" in capsys.readouterr().out
    with_them = {record.key for record in read_records(folder.parent / "out")}
    # A folder of the same name, which this process has not looked at yet.
    well = folder.parent / "well" / "pets"
    shutil.copytree(folder, well)
    for name in ("a/0.png", "c/1.png"):
        (well / name).unlink()
    assert bench(well) == 0
    assert {record.key for record in read_records(well.parent / "out")} == with_them


def test_a_repaired_image_is_back(folder: Path) -> None:
    bench(folder)
    for name in ("a/0.png", "c/1.png"):
        (folder / name).write_bytes((folder / "b/0.png").read_bytes())
    assert bench(folder) == 0
    assert {record.results.images for record in read_records(folder.parent / "out")} == {28, 30}


def test_a_folder_of_nothing_else_is_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in folder.glob("*/*"):
        path.write_bytes(b"no image")
    assert bench(folder, "--corruptions", "fog") == 2
    assert "got no image that can be read" in capsys.readouterr().err
