"""Numbers in the documentation are those of the committed results."""

import csv
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.scripts.loading import script

from polytta.models import bundled_records

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


def test_the_page_on_clip_carries_its_tables_and_readme_what_matters_most() -> None:
    page, readme = (ROOT / "docs" / "clip.md").read_text(), (ROOT / "README.md").read_text()
    clip = script("summarise_clip")
    tables = clip.runs_of([RESULTS / f"clip_{name}table.csv" for name in ("", "lenses_", "fashion_")])
    assert clip.text(tables, clip.times_of(RESULTS / "clip_times.csv")) in page
    run, lenses, fashion = tables.values()
    for over, row in (("source", "watt_s"), ("watt_p", "watt_s"), ("watt_s", "watt_s_aug"), ("source", "tpt")):
        assert f"| {clip.gain(run, row, over)} |" in page
    for row in ("watt_s_aug_grad", "watt_s_aug_kl", "watt_s_aug_svgd"):
        assert f"{clip.gain(run, row, 'watt_s_aug')} (" in page
    through = [clip.gain(lenses, "watt_sight", over).lstrip("+") for over in ("default", "watt_s")]
    assert f"it is {through[0]} points ahead of the default and {through[1]} ahead" in " ".join(page.split())
    gained = [clip.gain(fashion, row, "source").split()[0].lstrip("+") for row in ("default", "watt_s")]
    assert f"It gains {gained[0]} points, and WATT-S, on fewer images, {gained[1]}." in page
    assert clip.ahead(fashion, "watt_sight", "default") == "14 of 15"
    assert f"gets {clip.mean(run, 'source'):.1f} % right zero-shot" in readme
    assert f"WATT-S gains {clip.gain(run, 'watt_s', 'source').split()[0][1:]}" in readme
    gained = clip.mean(run, "default") - clip.mean(run, "source")
    assert f"the two lines above gain {gained:.1f}" in readme
    assert f"it gets {100 * bundled_records()['mini_clip']['test_accuracy']:.1f} % of the CIFAR-10 test set" in readme
    with (RESULTS / "clip_table.csv").open(encoding="utf-8", newline="") as stream:
        lines = [line for line in csv.DictReader(stream) if (line["images"], line["seed"]) == ("256", "0")]
    for row in ("watt_s_aug", "watt_s_aug_kl", "watt_s_aug_grad", "watt_s_aug_svgd", "watt_lenses"):
        apart = [100 * float(line["disagreement"]) for line in lines if line["variant"] == row]
        assert f"{sum(apart) / 15:.1f} %" in page


def test_the_page_on_clip_shows_the_drawing_of_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["draw_clip.py", str(tmp_path / "clip.svg")])
    script("draw_clip").main()
    assert (tmp_path / "clip.svg").read_text() == (ROOT / "docs" / "clip.svg").read_text()


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
