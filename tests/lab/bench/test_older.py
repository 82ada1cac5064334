"""Records that 0.1.0.dev0 wrote before the settings had one spelling: a grid of three rows, six images each."""

import json
from pathlib import Path

import pytest
from torch import nn

from polytta.diversity import SVGD, Grad
from polytta.errors import StateError
from polytta.lab.bench import Grid, Options, Record, benchmark, compare, read_records
from polytta.lab.bench.store import Store
from polytta.lab.pages.bench.write import write_report
from polytta.methods import DeYO
from polytta.optim import SGD, Adam, AdamW
from polytta.settings import resolve

FOLDER = Path(__file__).parent / "vectors" / "record-1"
# The grid they were made from.
ROWS = {
    "mine": {
        "method": {"name": "deyo", "plpd_threshold": 0.1},
        "particles": 2,
        "diversity": {"name": "grad", "weight": 0.05, "form": "cosine"},
        "optimizer": [{"name": "sgd", "momentum": 0.5}, "adam"],
        "lr_spread": 0.5,
        "aggregate": "evidence",
        "lr": 0.001,
    },
    "kernel": {
        "method": "tent",
        "diversity": {"name": "svgd", "bandwidth": "median"},
        "optimizer": {"name": "adamw", "weight_decay": 0.1},
        "views": "flips",
    },
}
# What is called otherwise since: a threshold of DeYO.
RENAMED = {"pins.settings.method.margin", "pins.settings.method.reference_entropy"}
# Evidence has another formula and other constants.
EVIDENCE = ("pins.aggregate.", "pins.settings.aggregate.")
GRID = Grid(corruptions=("fog",), variants=("source", "mine", "kernel"), images=6, define=ROWS)


@pytest.fixture(scope="module")
def before() -> dict[str, Record]:
    return {record.cell.variant: record for record in read_records(FOLDER)}


def test_keys_are_what_they_were(before: dict[str, Record]) -> None:
    assert {record.key for record in before.values()} == {path.stem for path in (FOLDER / "cells").iterdir()}


def test_a_flat_cell_becomes_the_settings_it_meant(before: dict[str, Record]) -> None:
    network = nn.Sequential(nn.LayerNorm(3))
    mine = resolve(before["mine"].cell.to_settings(), network)
    assert mine.method == DeYO(entropy_threshold=0.4, plpd_threshold=0.1)
    assert mine.diversity == Grad(weight=0.05, form="cosine")
    assert mine.optimizers == (SGD(momentum=0.5), Adam())
    assert (mine.settings.lr_spread, mine.aggregate.name, mine.particles) == (0.5, "evidence", 2)
    kernel = resolve(before["kernel"].cell.to_settings(), network)
    assert kernel.diversity == SVGD(bandwidth="median")
    assert kernel.optimizers == (AdamW(weight_decay=0.1),) * 3
    assert before["source"].particle_count == before["source"].cell.option("particles") == 1


def test_tables_and_report_are_made_of_them(before: dict[str, Record], tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    for path in (FOLDER / "cells").iterdir():
        (tmp_path / "cells" / path.name).write_bytes(path.read_bytes())
    assert len(Store(tmp_path).write_tables()) == 3
    write_report(tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert all(record.key in page for record in before.values())
    text = (tmp_path / "results.md").read_text()
    assert "plpd_threshold=0.1" in text
    assert "adamw(" in text


def test_todays_run_differs_in_protocol_and_names_and_nothing_else_that_counts(
    before: dict[str, Record], tmp_path: Path
) -> None:
    today = {r.cell.variant: r for r in benchmark(GRID, tmp_path, Options(jobs=1, progress=False)).records}
    for name, old in before.items():
        comparison = compare([old], [today[name]])
        facts = {one.fact for one in comparison.differences if not one.fact.startswith("environment.")}
        of_evidence = {fact for fact in facts if fact.startswith(EVIDENCE)}
        assert ("pins.aggregate.formula" in of_evidence) == (name == "mine")
        assert facts - of_evidence == {"pins.protocol", *(RENAMED if name == "mine" else ())}
        (verdict,) = comparison.verdicts.values()
        assert verdict.gain == 0
        assert today[name].results.nll == pytest.approx(old.results.nll, abs=0.02)
        assert today[name].results.ece == pytest.approx(old.results.ece, abs=0.02)


def test_a_changed_one_is_refused_and_none_is_written_again(before: dict[str, Record], tmp_path: Path) -> None:
    path = next((FOLDER / "cells").iterdir())
    stored = json.loads(path.read_text())
    stored["cell"]["particles"] += 1
    with pytest.raises(StateError, match="checksum"):
        Record.from_dict(stored)
    with pytest.raises(StateError, match="older format"):
        before["mine"].write(tmp_path)
    assert not list(tmp_path.iterdir())
