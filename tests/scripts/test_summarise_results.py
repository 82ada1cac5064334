"""Numbers in the documentation are those of the committed results."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "results" / "table.csv"


@pytest.fixture(scope="module")
def summary() -> ModuleType:
    spec = importlib.util.spec_from_file_location("summarise_results", ROOT / "scripts" / "summarise_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_findings_carry_the_tables(summary: ModuleType) -> None:
    panels, page = summary.read(TABLE), (ROOT / "docs" / "findings.md").read_text()
    assert len(panels) == 11
    assert summary.accuracies(panels) in page
    assert summary.disagreement(panels) in page


def test_the_readme_carries_the_results(summary: ModuleType) -> None:
    shown = [line for line in (ROOT / "README.md").read_text().splitlines() if line.count("|") == 6 and ", " in line]
    panels = summary.read(TABLE)
    assert len(shown) == len(panels)
    for line, rows in zip(shown, panels.values(), strict=True):
        single = max(summary.mean(rows[name]) for name in summary.SINGLE)
        wanted = (summary.mean(rows["source"]), single, summary.mean(rows["grad"]), summary.mean(rows["lenses"]))
        assert line.split("|")[2:6] == [f" {value:.1f} " for value in wanted], line
