"""The committed page is what its measurements say, and the command refuses in one sentence."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.cli.program import ROOT, refusal
from tests.lab.pages.browser import needs_chromium, screenshot

from polytta.cli import main
from polytta.errors import InputError
from polytta.lab.perf.goals import GOALS, LABELS, PARTICLES
from polytta.lab.perf.markdown import performance_markdown
from polytta.lab.perf.measurements import Measurements

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def measurements() -> Measurements:
    return Measurements.load(DOCS / "performance.json")


def test_the_committed_page_is_made_from_the_committed_measurements(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["perf", "--show", str(DOCS / "performance.json"), "--out", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["performance-growth.svg", "performance.md"]
    for written in tmp_path.iterdir():
        assert written.read_bytes() == (DOCS / written.name).read_bytes(), written.name
    assert capsys.readouterr().out == (DOCS / "performance.md").read_text() + "\n"


def test_measurements_survive_saving(measurements: Measurements, tmp_path: Path) -> None:
    measurements.save(tmp_path / "performance.json")
    assert (tmp_path / "performance.json").read_bytes() == (DOCS / "performance.json").read_bytes()


def test_the_page_follows_its_measurements(measurements: Measurements) -> None:
    """A reference ten times slower meets every goal, one ten times faster misses every one."""

    def with_reference(factor: float) -> str:
        changed = [
            replace(f, milliseconds=[factor * t for t in f.milliseconds]) if f.variant == "reference" else f
            for f in measurements.measured
        ]
        return performance_markdown(replace(measurements, measured=changed))

    assert "No goal is missed." in with_reference(10)
    assert "missed**" not in with_reference(10)
    missed = [line for line in with_reference(0.1).splitlines() if line.startswith("- Goal missed: ")]
    assert len(missed) == len(GOALS)
    for sentence, (model, batch) in zip(missed, GOALS, strict=True):
        assert f"{LABELS[model]} at batch {batch} " in sentence


def test_default_and_best_precision_stand_side_by_side(measurements: Measurements) -> None:
    """Of measurements made before both were, the page says that one is missing."""
    assert performance_markdown(measurements).count("not measured") in (0, len(GOALS))
    model, batch = next(iter(GOALS))
    best = measurements.find(model, batch, "grad", 3)
    slower = replace(best, precision="fp32", milliseconds=[7 * time for time in best.milliseconds])
    kept = [m for m in measurements.measured if m.engine != "graph" or m.precision != "fp32"]
    page = performance_markdown(replace(measurements, measured=[slower, *kept]))
    row = next(line for line in page.splitlines() if line.startswith(f"| {LABELS[model]} | {batch} |"))
    reference = measurements.find(model, batch, "reference", 1).median
    assert f"| {slower.median:.2f} ms | {slower.median / reference:.2f}x | {best.median:.2f} ms |" in row
    assert "Grad, fp32" in page


def test_goals_of_growth_are_said_either_way(measurements: Measurements) -> None:
    def with_many(factor: float) -> str:
        many = [
            replace(f, milliseconds=[factor * t for t in f.milliseconds])
            if f.populations > 1 or (f.particles == PARTICLES[-1] and f.batch == 1)
            else f
            for f in measurements.measured
        ]
        return performance_markdown(replace(measurements, measured=many))

    for factor, verdict in ((0.1, "met"), (10, "missed")):
        assert f"ViT-B/16, 2.00x, is {verdict} for naive and {verdict} for Grad." in with_many(factor)
        assert f"15 populations, 1.50x, is {verdict}." in with_many(factor)


def test_memory_is_said_either_way(measurements: Measurements) -> None:
    frugal = [replace(f, memory=1.0) if f.particles == 8 else f for f in measurements.measured]
    said = performance_markdown(replace(measurements, measured=frugal))
    assert "needs 1 MiB for 8 particles with Grad, no more than the " in said
    assert ", more than the " not in said


def test_growth_is_over_one_particle(measurements: Measurements) -> None:
    rows = [line for line in performance_markdown(measurements).splitlines() if line.startswith("| ViT-B/16, ")]
    assert len(rows) == 2
    for row in rows:
        _, *times, last = (cell.strip() for cell in row.strip("|").split("|"))
        assert len(times) == len(PARTICLES)
        assert float(last.rstrip("x")) == pytest.approx(
            float(times[-1].split()[0]) / float(times[0].split()[0]), abs=0.01
        )


def test_measurements_of_an_older_kind_get_one_sentence(measurements: Measurements) -> None:
    fewer = [m for m in measurements.measured if m.particles != 5]
    with pytest.raises(InputError, match="--show: got no none with 5 particles"):
        performance_markdown(replace(measurements, measured=fewer))


@needs_chromium
def test_no_label_of_the_drawing_is_cut_off(tmp_path: Path) -> None:
    """Nothing but white at the right edge of either half: names at the ends of lines fit."""
    drawing = (DOCS / "performance-growth.svg").read_text()
    root = ElementTree.fromstring(drawing)
    width = int(root.get("viewBox", "").split()[2])
    pixels = screenshot(f'<body style="margin:0">{drawing}</body>', tmp_path, width)
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
    halves = root.findall("{*}svg")
    assert len(halves) == 2
    for half in halves:
        end = int(half.get("x", "")) + int(half.get("width", ""))
        assert (pixels[:, end - 4 : end] == 255).all()


@pytest.mark.skipif(torch.cuda.is_available(), reason="measures where there is a CUDA device")
def test_without_a_gpu_there_is_no_page_to_make(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "without a CUDA device" in refusal(capsys, "perf", "--out", tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [None, "{", "[1]", '{"device": "none"}'])
def test_measurements_that_are_not_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str | None
) -> None:
    shown = tmp_path / "figures.json"
    if content is not None:
        shown.write_text(content)
    assert "figures.json" in refusal(capsys, "perf", "--show", shown, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_readme_shows_the_goals_as_measured() -> None:
    """Every row of the page's first table, met or missed."""
    table = (DOCS / "performance.md").read_text().partition("against one model today\n\n")[2].partition("\n\n")[0]
    assert table.count("\n") == len(GOALS) + 1
    assert table in (ROOT / "README.md").read_text()
