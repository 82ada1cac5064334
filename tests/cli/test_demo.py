import json
import re
from pathlib import Path

import pytest
from tests.cli.program import polytta, refusal

from polytta.lab.bench.store import read_records
from polytta.lab.demo.options import CORRUPTIONS, ROWS

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
