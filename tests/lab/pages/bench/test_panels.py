from dataclasses import replace
from statistics import fmean, stdev

import pytest
from tests.lab.bench.records import CELL
from tests.lab.pages.bench.entries import entries, entry

from polytta.errors import InputError
from polytta.lab.pages.bench.panel import Panel
from polytta.lab.pages.bench.panels import panels


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
