import json
import re
from pathlib import Path

import pytest
from tests.cli.program import polytta, refusal

from polytta.lab.bench.store import read_records
from polytta.lab.demo.options import CLIP_ROWS, CORRUPTIONS, ROWS

IMAGES = 3


def test_demo_prints_table_and_writes_report_and_record(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    done = polytta("demo", "--quick", "--images", IMAGES, "--out", folder, "--seed", 5)
    assert done.returncode == 0, done.stderr
    assert "100%" in done.stderr
    for row in ROWS:
        assert re.search(rf"^{row} .*%", done.stdout, re.MULTILINE)
    assert str(folder / "report.html") in done.stdout

    record = json.loads((folder / "record.json").read_text())
    assert record["data"] == "generated"
    assert list(record["streams"]) == list(CORRUPTIONS)
    for stream in record["streams"].values():
        assert [domain["origin"] for domain in stream["domains"]] == ["generated"]
        assert stream["images"] == IMAGES
    assert record["seed"] == 5
    assert list(record["rows"]) == list(ROWS)
    report = (folder / "report.html").read_text()
    hashes = [stream["sha256"] for stream in record["streams"].values()]
    for fact in (record["model"]["weights_sha256"], *hashes, record["environment"]["torch"]):
        assert fact in report

    keys = {key for row in record["rows"].values() for key in row["records"]}
    assert {found.key for found in read_records(folder / "bench")} == keys


@pytest.mark.parametrize("wrong", [("--images", 0), ("--images", 2001), ("--seed", -1)])
def test_demo_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path, wrong: tuple[str, int]) -> None:
    sentence = refusal(capsys, "demo", *wrong, "--out", tmp_path)
    assert wrong[0] in sentence
    assert str(wrong[1]) in sentence


def test_demo_refuses_an_output_folder_that_is_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert str(tmp_path / "file") in refusal(capsys, "demo", "--out", tmp_path / "file")


@pytest.mark.long
def test_demo_of_clip_with_names_of_ones_own(tmp_path: Path) -> None:
    names = ("cat", "sports car", "teapot")
    arguments = ("--images", 1, "--corruptions", "frost", "--classes", *names, "--out", tmp_path)
    done = polytta("demo", "--clip", "--quick", *arguments)
    assert done.returncode == 0, done.stderr
    for row in CLIP_ROWS:
        assert re.search(rf"^{row} .*%", done.stdout, re.MULTILINE)
    report = (tmp_path / "report.html").read_text()
    assert "zero-shot CLIP" in report
    for name in names:
        assert name in report
        assert name in done.stdout
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["model"]["id"] == "bundled/mini_clip"
    assert record["learning_rate"] is None


def test_names_need_a_model_that_reads(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "--classes: got cat, dog" in refusal(capsys, "demo", "--classes", "cat", "dog", "--out", tmp_path)
    assert "--classes: got no name" in refusal(capsys, "demo", "--clip", "--classes", "--out", tmp_path)
    assert "more than once" in refusal(capsys, "demo", "--clip", "--classes", "cat", "cat", "--out", tmp_path)
