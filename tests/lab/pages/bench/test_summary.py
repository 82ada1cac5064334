from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest
from tests.lab.bench.records import CELL

from polytta.errors import InputError
from polytta.lab.pages.bench.layout import accuracy_matrix, summary_matrix
from polytta.lab.pages.bench.read import _typed
from polytta.lab.pages.bench.summary import Entry, Panel, panels

ACCURACY = {
    ("source", "fog"): (50.0, 52.0),
    ("source", "snow"): (60.0, 60.0),
    ("tent", "fog"): (55.0, 57.0),
    ("tent", "snow"): (50.0, 54.0),
    ("grad", "fog"): (58.0, 60.0),
    ("grad", "snow"): (61.0, 65.0),
}
SETTINGS: dict[str, Mapping[str, Any]] = {
    "source": {"method": "source", "particles": 1},
    "tent": {"method": "tent", "particles": 1},
    "grad": {"method": "deyo", "particles": 3, "diversity": "grad"},
}


def entry(variant: str, corruption: str, seed: int, accuracy: float, **cell: Any) -> Entry:
    plain = {**CELL.flat(), "variant": variant, "corruption": corruption, "seed": seed, **SETTINGS[variant], **cell}
    results = {"accuracy": accuracy, "top5": 90.0, "ece": 0.1, "nll": 1.0, "brier": 0.5}
    times = {"wall_seconds": 2.0, "images_per_second": 20.0}
    key = f"{variant}-{corruption}-{seed}-{sorted(cell.items())}"
    return Entry(key, _typed({name: "" if value is None else str(value) for name, value in plain.items()}), results, times)


def entries() -> list[Entry]:
    return [
        entry(variant, corruption, seed, value)
        for (variant, corruption), values in ACCURACY.items()
        for seed, value in enumerate(values)
    ]


@pytest.fixture
def panel() -> Panel:
    (found,) = panels(entries())
    return found


def test_panel_has_the_papers_layout(panel: Panel) -> None:
    assert [row.name for row in panel.rows] == ["source", "tent", "grad"]
    assert panel.columns == ("snow", "fog")  # as tables print them, not as they came
    assert panels(reversed(entries()))[0].columns == panel.columns


def test_means_and_spreads_by_hand(panel: Panel) -> None:
    grad = panel.rows[2]
    fog, average = grad.stat("fog"), grad.average(panel.columns)
    assert fog is not None
    assert average is not None
    assert (fog.mean, fog.std) == (59.0, pytest.approx(stdev((58.0, 60.0))))
    per_seed = [fmean((58.0, 61.0)), fmean((60.0, 65.0))]
    assert (average.mean, average.std) == (pytest.approx(61.0), pytest.approx(stdev(per_seed)))
    assert grad.speed == pytest.approx(20.0)


def test_table_marks_the_best_and_what_is_below_source(panel: Panel) -> None:
    matrix = accuracy_matrix(panel)
    assert matrix.header == ("Method", "Snow", "Fog", "Avg.")
    marks = {line.name: [(value.best, value.below) for value in line.values] for line in matrix.lines}
    assert marks["grad"] == [(True, False)] * 3
    assert marks["tent"] == [(False, True), (False, False), (False, True)]
    assert matrix.lines[2].values[1].plain == "59.0 ± 1.4"


def test_summary_compares_with_source_and_the_best_single_model(panel: Panel) -> None:
    matrix = summary_matrix(panel)
    lines = {
        line.name: dict(zip(matrix.header[1:], (v.text for v in line.values), strict=True)) for line in matrix.lines
    }
    assert lines["grad"]["over source"] == "+5.5"
    assert lines["grad"]["over tent"] == "+7.0"
    assert lines["tent"]["worst against source"] == "-8.0 (Snow)"
    assert lines["source"]["over source"] == ""


def test_a_missing_cell_leaves_the_average_open(panel: Panel) -> None:
    (found,) = panels([e for e in entries() if not (e.cell["variant"] == "tent" and e.column == "snow")])
    line = accuracy_matrix(found).lines[1]
    assert [value.text for value in line.values] == ["-", "56.0", "-"]


def test_rows_of_one_label_with_other_settings_are_kept_apart() -> None:
    twins = [entry("grad", "fog", 0, 60.0, weight=weight) for weight in (0.1, 0.3)]
    (found,) = panels(twins)
    assert [row.name for row in found.rows] == ["grad (weight=0.1)", "grad (weight=0.3)"]


def test_models_and_scenarios_have_panels_of_their_own() -> None:
    other = [
        entry("source", "fog", 0, 60.0, scenario="mild", batch_size=64),
        entry("source", "fog", 0, 60.0, model="x"),
    ]
    assert [panel.fields["model"] for panel in panels([*entries(), *other])] == [CELL.model, CELL.model, "x"]


def test_one_cell_twice_is_not_two_seeds() -> None:
    again = replace(entry("tent", "fog", 1, 80.0), key="made with other weights")
    with pytest.raises(InputError, match=r"made with other weights.*tent, fog, seed 1"):
        panels([*entries(), again])


def test_streams_over_other_corruptions_have_panels_of_their_own() -> None:
    sets = [("fog", "snow"), ("fog", "frost")]
    mixed = [entry("tent", "+".join(names), 0, 60.0, scenario="mixed") for names in sets]
    found = panels(mixed)
    assert {panel.fields["pooled"] for panel in found} == set(sets)
    assert len({panel.anchor for panel in found}) == 2
    assert len({panel.description for panel in found}) == 2
