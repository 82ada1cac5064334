import json
import re
from pathlib import Path

import pytest
from tests.cli.program import polytta, refusal

from polytta.lab.demo.settings import CORRUPTIONS, ROWS

IMAGES = 3


def test_demo_prints_table_and_writes_report_and_record(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    done = polytta("demo", "--quick", "--images", IMAGES, "--out", folder, "--seed", 5)
    assert done.returncode == 0, done.stderr
    assert "100%" in done.stderr
    for row in ROWS:
        assert re.search(rf"^{row.name} .*%", done.stdout, re.MULTILINE)
    assert str(folder / "report.html") in done.stdout

    record = json.loads((folder / "record.json").read_text())
    assert record["data"] == "generated"
    assert [domain["origin"] for domain in record["stream"]["domains"]] == ["generated"] * len(CORRUPTIONS)
    assert record["stream"]["images"] == IMAGES * len(CORRUPTIONS)
    assert record["seed"] == 5
    assert list(record["rows"]) == [row.name for row in ROWS]
    report = (folder / "report.html").read_text()
    for fact in (record["model"]["weights_sha256"], record["stream"]["sha256"], record["versions"]["torch"]):
        assert fact in report


@pytest.mark.parametrize("wrong", [("--images", 0), ("--images", 2001), ("--seed", -1)])
def test_demo_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path, wrong: tuple[str, int]) -> None:
    sentence = refusal(capsys, "demo", *wrong, "--out", tmp_path)
    assert wrong[0] in sentence
    assert str(wrong[1]) in sentence


def test_demo_refuses_an_output_folder_that_is_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert str(tmp_path / "file") in refusal(capsys, "demo", "--out", tmp_path / "file")
