"""Numbers in the documentation are those of the committed results."""

import csv
from pathlib import Path
from types import ModuleType

import pytest
from tests.scripts.loading import script

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
FINDINGS = (ROOT / "docs" / "findings.md").read_text()


@pytest.fixture(scope="module")
def default() -> ModuleType:
    return script("summarise_default")


def test_findings_and_readme_carry_the_tables_of_the_default(default: ModuleType) -> None:
    panels, today = default.read(RESULTS), default.read(RESULTS / "today")
    assert (len(panels), len(today)) == (18, 17)
    assert default.headline(today) in (ROOT / "README.md").read_text()
    assert default.safety(today) in FINDINGS
    assert default.goals(panels) in FINDINGS
    assert default.safety(panels) in FINDINGS
    for model in ("ResNet-GN", "ViT", "ResNet-BN", "DeiT-Tiny"):
        assert default.percents(panels, model) in FINDINGS


def test_findings_carry_the_table_of_the_lenses() -> None:
    lenses = script("summarise_lenses")
    table = lenses.table(lenses.read(RESULTS / "lenses_table.csv"))
    assert table.count("\n") == 6
    assert table in FINDINGS


def test_the_page_on_clip_carries_what_the_default_of_today_is_worth() -> None:
    def means(file: Path) -> dict[str, float]:
        with file.open(encoding="utf-8", newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row["images"] == "256"]
        found = {name: [float(row["accuracy"]) for row in rows if row["variant"] == name]
                 for name in {row["variant"] for row in rows}}  # fmt: skip
        assert {len(values) for values in found.values()} == {15}
        return {name: sum(values) / 15 for name, values in found.items()}

    today, others = means(RESULTS / "today" / "clip_table.csv"), means(RESULTS / "clip_table.csv")
    page = (ROOT / "docs" / "clip.md").read_text()
    for name, label in (("looking", "default, never learning"), ("default", "**default**")):
        assert f"| {label} | {today[name]:.1f} | {today[name] - today['source']:+.1f} |" in page
    best = max(value for name, value in others.items() if name.startswith("watt_s_aug"))
    assert f"That is {today['default'] - best:.1f} points over the best of the others" in page


def test_an_oracle_rate_is_the_best_and_a_collapsed_rival_is_no_yardstick(default: ModuleType) -> None:
    def row(accuracy: float) -> object:
        return default.Row({"fog": [accuracy]}, 100, [0.1])

    panel = {"source": row(50), "tent": row(40), "tent_0": row(55), "tent_1": row(20), "sar": row(51)}
    assert default.best_rival(panel)[0] == "tent_0"
    assert default.best_rival({"source": row(50), "tent": row(40)})[0] == "source"


def test_findings_carry_the_tables_of_the_papers_populations() -> None:
    paper = script("summarise_paper")
    panels = paper.read(RESULTS / "paper")
    assert len(panels) == 11
    assert paper.accuracies(panels) in FINDINGS
    assert paper.disagreement(panels) in FINDINGS
