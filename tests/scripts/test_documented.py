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
    panels = default.read(RESULTS)
    assert len(panels) == 18
    assert default.headline(panels) in (ROOT / "README.md").read_text()
    assert default.headline(panels) in FINDINGS
    assert default.goals(panels) in FINDINGS
    assert default.safety(panels) in FINDINGS
    for model in ("ResNet-GN", "ViT", "ResNet-BN", "DeiT-Tiny"):
        assert default.percents(panels, model) in FINDINGS


def test_the_page_on_the_search_carries_the_table_of_the_lenses() -> None:
    lenses = script("summarise_lenses")
    table = lenses.table(lenses.read(RESULTS / "lenses_table.csv"))
    assert table.count("\n") == 6
    assert table in (ROOT / "docs" / "search.md").read_text()


def test_findings_carry_what_each_part_and_repulsion_are_worth() -> None:
    parts = script("summarise_parts")
    pairs = parts.read(RESULTS / "paired.csv")
    assert parts.parts(pairs) in FINDINGS
    assert parts.repulsion(pairs) in FINDINGS


def test_findings_carry_severity_3_and_what_was_not_finished(default: ModuleType) -> None:
    assert default.headline(default.read(RESULTS / "severity3"), "3") in FINDINGS
    assert default.unfinished(default.read(RESULTS / "lite0")) in FINDINGS
    assert default.over_seeds(RESULTS / "seeds") in FINDINGS
    assert default.headline(default.read(RESULTS / "held_out")) in FINDINGS


def test_findings_carry_the_frontier() -> None:
    frontier = script("draw_frontier")
    right = frontier.accuracies([RESULTS / "frontier_table.csv"], "cifar10_resnet_gn")
    assert frontier.table(right, frontier.costs(RESULTS / "frontier.csv", "cifar10_resnet_gn")) in FINDINGS


def test_the_page_on_clip_carries_what_diversified_watt_is_worth() -> None:
    def means(name: str) -> dict[str, float]:
        found: dict[str, list[float]] = {}
        with (RESULTS / name).open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                if row["images"] == "256":
                    found.setdefault(row["variant"], []).append(float(row["accuracy"]))
        assert {len(values) for values in found.values()} == {15}
        return {name: sum(values) / 15 for name, values in found.items()}

    earlier, today = means("clip_diversified_table.csv"), means("clip_table.csv")
    assert earlier["source"] == today["source"], "the same streams"
    page = (ROOT / "docs" / "clip.md").read_text()
    for name, value in earlier.items():
        if name.startswith("watt_s_aug"):
            assert f"| {value:.1f} | {value - earlier['source']:+.1f} ±" in page
    best = max(earlier.values())
    assert f"The default has {today['default']:.1f} on these images" in page
    assert f"{today['default'] - best:.1f} points over the best of them" in page


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
