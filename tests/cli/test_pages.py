"""The commands that read and show results."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.program import ROOT, refusal
from tests.lab.pages.bench.records import write_records

from polytta.cli import main
from polytta.lab.reproduce.recipes import RECIPES


def test_report_says_what_it_wrote(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_records(tmp_path, rows=("source",), corruptions=("fog",), seeds=(0,), images=2)
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page")]) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert {path.name for path in written} == {
        *("report.html", "results.md", "tables.tex"),
        *("facts.json", "table.csv", "times.csv"),
    }
    assert all(path.parent == tmp_path / "page" and path.is_file() for path in written)


def test_report_refuses_a_folder_without_records(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert str(tmp_path) in refusal(capsys, "report", tmp_path)


def test_reproduce_lists_every_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list"]) == 0
    listed = capsys.readouterr().out
    for recipe in RECIPES.values():
        assert f"{recipe.name}\n  shows  {recipe.shows}\n  needs  {recipe.needs}\n  takes  " in listed


def test_a_quick_reproduction_shows_that_it_works_and_claims_no_more(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["reproduce", "tab:runtime", "--data", "bundled", "--quick", "--out", str(tmp_path), "--jobs", "1"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "they say nothing about the published figures" in printed
    for name in ("Tent", "  published"):
        assert f"\n{name} " in printed
    assert "difference" not in printed
    assert (tmp_path / "reproduced.html").is_file()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [(("tab:none",), "tab:imagenet-c"), ((), "allowed"), (("tab:watt", "--data", "nowhere"), "nowhere")],
)
def test_reproduce_refuses(capsys: pytest.CaptureFixture[str], wrong: tuple[str, ...], named: str) -> None:
    assert named in refusal(capsys, "reproduce", *wrong)


@pytest.mark.parametrize(
    ("study", "options", "page"),
    [
        ("underspecification", ("--seeds", "0", "1"), "underspecification.html"),
        ("landscape", ("--resolution", "2"), "landscape.html"),
    ],
)
def test_study(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, study: str, options: tuple[str, ...], page: str
) -> None:
    small = ("--images", "4", "--judged-on", "4", "--lr", "0.01", "--method", "tent")
    assert main(["study", study, *small, *options, "--out", str(tmp_path)]) == 0
    assert "seed 1" in capsys.readouterr().out
    assert (tmp_path / page).is_file()


def test_study_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for wrong in (("--seeds", "3"), ("--corruption", "rain"), ("--images", "0"), ("--severity", "9")):
        sentence = refusal(capsys, "study", "underspecification", *wrong, "--out", tmp_path)
        assert wrong[1] in sentence
    assert not list(tmp_path.iterdir())


def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    """Like ``polytta reproduce --list | head -1``."""
    command = [sys.executable, "-m", "polytta", "perf", "--show", str(ROOT / "docs" / "performance.json")]
    with subprocess.Popen(
        [*command, "--out", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaint = process.stderr.read()
    assert complaint == ""
    assert process.returncode == 141
