"""Numbers in the documentation are those of the committed results."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"


@pytest.fixture(scope="module")
def summary() -> ModuleType:
    spec = importlib.util.spec_from_file_location("summarise_results", ROOT / "scripts" / "summarise_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_findings_carry_the_tables(summary: ModuleType) -> None:
    panels, page = summary.read(RESULTS), (ROOT / "docs" / "findings.md").read_text()
    assert len(panels) == 11
    assert summary.accuracies(panels) in page
    assert summary.disagreement(panels) in page


def test_the_readme_carries_the_results(summary: ModuleType) -> None:
    shown = [line for line in (ROOT / "README.md").read_text().splitlines() if line.count("|") == 6 and ", " in line]
    panels = summary.read(RESULTS)
    assert len(shown) == len(panels)
    for line, panel in zip(shown, panels, strict=True):
        rows = (panel.source, panel.best_single, summary.row(panel, "grad"), summary.row(panel, "lenses"))
        assert line.split("|")[2:6] == [f" {summary.mean(panel, row):.1f} " for row in rows], line
