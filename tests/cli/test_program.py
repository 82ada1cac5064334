"""The command line itself: the version, what it does not know, and what the system refuses."""

import os
from pathlib import Path

import pytest
from tests.cli.program import refusal
from tests.lab.bench.networks import TINY
from tests.lab.pages.bench.records import write_records

from polytta import __version__
from polytta.cli import main
from polytta.lab.bench.variants import VARIANTS


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"polytta {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("demo --sed 1", "--sed: got something unknown; allowed is what `polytta demo --help` lists (--seed?)."),
        ("data stat", "action: got 'stat'; allowed are 'status'."),
        ("", "command: got none; allowed are demo, bench, compare, "),
        (
            "corrupt a b --set cifar --severities 3",
            "--severities: got something unknown; allowed is",
        ),
        ("bnech", "bnech: got something unknown; allowed is the commands demo, bench"),
        ("bench --seeds x", "--seeds: got 'x'; allowed is [INT [INT ...]]."),
        ("bench --jobs", "--jobs: got no value; allowed is what `polytta bench --help` lists."),
        ("bench --fold sometimes", "--fold: got 'sometimes'; allowed are 'auto', 'always', 'never'."),
        ("corrupt a b", "--set: got nothing; allowed are imagenet, cifar."),
        ("corrupt a", "DST, --set: got nothing; allowed is what `polytta corrupt --help` lists."),
        ("demo --images 1.5", "--images: got '1.5'; allowed is INT."),
    ],
)
def test_a_wrong_command_line_gets_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: str, sentence: str
) -> None:
    assert refusal(capsys, *arguments.split()).startswith(f"polytta: {sentence}")


def test_help_lists_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    words = set(capsys.readouterr().out.replace(",", " ").split())
    assert set(VARIANTS) <= words


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/proc/self").is_dir(), reason="needs a place nobody can write to")
@pytest.mark.parametrize(
    "command",
    [
        ("bench", "--models", TINY, "--corruptions", "fog", "--images", "2", "--variants", "source", "--jobs", "1"),
        ("demo", "--quick"),
        ("corrupt", "bundled", "--set", "cifar", "--types", "fog"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_a_sentence(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    # Not even root may make files there.
    place = "/proc/self/polytta"
    where = [place] if command[0] == "corrupt" else ["--out", place]
    assert (
        main([command[0], *command[1:2], *where, *command[2:]] if command[0] == "corrupt" else [*command, *where]) == 2
    )
    sentence = capsys.readouterr().err.replace("\r", "\n").splitlines()[-1]
    assert sentence.startswith("polytta: ")
    assert "/proc/self" in sentence


def test_a_broken_record_is_a_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_records(tmp_path, rows=("source",), corruptions=("fog",), seeds=(0,), images=2)
    (file,) = (tmp_path / "cells").iterdir()
    file.write_text('{"format": [')
    assert str(file) in refusal(capsys, "report", tmp_path)
    (tmp_path / "cells").rename(tmp_path / "away")
    (tmp_path / "table.csv").write_text("key,model\n1")
    assert "table.csv" in refusal(capsys, "report", tmp_path)


def test_broken_facts_are_a_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_records(tmp_path, rows=("source",), corruptions=("fog",), seeds=(0,), images=2)
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page")]) == 0
    capsys.readouterr()
    (tmp_path / "page/facts.json").write_text("{")
    assert "facts.json" in refusal(capsys, "report", tmp_path / "page")


def test_models_are_looked_for_before_anything_is_planned(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    models = [TINY, "timm/resnet18.a1_in1k"]
    assert main(["bench", "--models", *models, "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "planning" not in said
    assert "timm/resnet18.a1_in1k=FILE" in said


def test_bench_ends_with_its_table_and_the_next_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = [
        "--models",
        TINY,
        "--corruptions",
        "fog",
        "--images",
        "12",
        "--variants",
        "source",
        "deyo",
        "--jobs",
        "1",
    ]
    assert main(["bench", *arguments, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    lines = {line.split()[0]: line for line in said.splitlines() if line.strip()}
    assert "±" in lines["source"]
    assert "±" in lines["deyo"]
    assert f"Next: polytta report {tmp_path}" in said
    command = next(line for line in said.splitlines() if line.startswith("Next:")).split("polytta compare ")[1]
    assert main(["compare", *command.split()]) == 0
    assert "source | deyo" in capsys.readouterr().out
