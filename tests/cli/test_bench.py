import csv
import json
from pathlib import Path

import pytest
from tests.cli.program import polytta, refusal
from tests.lab.bench.networks import TINY

from polytta.cli import main
from polytta.cli.bench import _sentence
from polytta.lab.bench.run_grid import Summary

GRID = f"""
models = ["{TINY}"]
corruptions = ["fog"]
variants = ["source", "mine"]
images = 12

[define.mine]
method = "tent"
particles = 2
lr = 0.01
"""


def test_a_grid_from_a_file_is_run_resumed_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "grid.toml").write_text(GRID)
    arguments = ("bench", "--config", tmp_path / "grid.toml", "--out", tmp_path / "out", "--jobs", 1)
    done = polytta(*arguments)
    assert done.returncode == 0, done.stderr
    assert "2 cells run, 0 were finished before" in done.stdout
    assert "cell 2/2: 100%" in done.stderr
    with (tmp_path / "out/table.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert [(row["variant"], row["particles"]) for row in rows] == [("mine", "2"), ("source", "1")]
    # A flag beside the file wins over it, and what is finished stays.
    assert main([*map(str, arguments), "--seeds", "0", "1", "--normalisation", "correct"]) == 0
    assert "2 cells run, 2 were finished before" in capsys.readouterr().out
    first, second = sorted((tmp_path / "out/cells").iterdir())[:2]
    assert main(["compare", str(first), str(second)]) == 0
    assert "Accuracy, A | B" in capsys.readouterr().out


def test_one_cell_is_not_several() -> None:
    assert _sentence(Summary([], 1, 1, [])) == "1 cell run, 1 was finished before."


def test_a_flag_wins_over_the_file_also_where_it_gives_the_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "grid.toml").write_text(f"seeds = [1, 2]\n{GRID}")
    arguments = [f"--config={tmp_path / 'grid.toml'}", "--out", str(tmp_path / "out"), "--jobs", "1", "--seeds", "0"]
    assert main(["bench", *arguments]) == 0
    assert "2 cells run" in capsys.readouterr().out
    assert json.loads((tmp_path / "out/grid.json").read_text())["seeds"] == [0]


def test_the_exit_code_says_that_a_cell_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = TINY.replace("tiny", "fragile")
    arguments = ["--models", model, "--corruptions", "fog", "--variants", "source", "--images", "100", "--jobs", "1"]
    assert main(["bench", *arguments, "--out", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "1 failed" in said.out
    assert "this network fails" in said.err


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (("--variants", "tnet"), "tnet"),
        (("--corruptions", "rain"), "rain"),
        (("--datasets", "cifar11"), "cifar11"),
        (("--jobs", "0"), "--jobs"),
        (("--trackers", "abacus"), "abacus"),
        (("--config", "none.toml"), "none.toml"),
        (("--models", "bundled/none"), "none"),
        (("--set", "colour=red"), "set: got 'colour'; allowed are aggregate, "),
        (("--set", "method=nowhere:Mine"), "nowhere"),
        (("--methods", "nowhere:Mine"), "nowhere"),
        (("--device", "cuda:99"), "--device: got 'cuda:99', which is not here; allowed are auto, cpu"),
        (("--device", "toaster"), "toaster"),
    ],
)
def test_bench_refuses_in_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, wrong: tuple[str, str], named: str
) -> None:
    # Planning may have shown a bar by then; the sentence is the line that is left.
    assert main(["bench", "--out", str(tmp_path / "out"), *wrong]) == 2
    sentence = capsys.readouterr().err.replace("\r", "\n").splitlines()[-1]
    assert sentence.startswith("polytta: ")
    assert named in sentence
    assert not (tmp_path / "out").exists()


def test_compare_refuses_what_is_no_record(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert str(tmp_path) in refusal(capsys, "compare", tmp_path, tmp_path)
