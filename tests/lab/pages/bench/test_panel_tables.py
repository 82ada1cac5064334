from dataclasses import replace

import pytest
from scipy import stats
from tests.lab.pages.bench.entries import entries, entry

from polytta.lab.pages.bench.panel import Panel
from polytta.lab.pages.bench.panel_tables import accuracy_table, summary_table
from polytta.lab.pages.bench.panels import panels


@pytest.fixture
def panel() -> Panel:
    (found,) = panels(entries())
    return found


def test_table_marks_the_best_and_what_is_below_source(panel: Panel) -> None:
    table = accuracy_table(panel)
    assert table.header == ("Method", "Snow", "Fog", "Avg.")
    marks = {row.name: [(cell.best, cell.below) for cell in row.cells] for row in table.rows}
    assert marks["grad"] == [(False, False)] * 3, "40 images cannot tell who is best"
    assert marks["tent"] == [(False, True), (False, False), (False, True)]
    assert table.rows[2].cells[1].plain == "59.0 ± 1.4"


def test_summary_compares_with_source_and_the_best_single_model(panel: Panel) -> None:
    table = summary_table(panel)
    lines = {row.name: dict(zip(table.header[1:], (v.text for v in row.cells), strict=True)) for row in table.rows}
    assert table.rows[2].cells[2].plain.startswith("+5.5 ± "), "a gain has its interval"
    assert lines["grad"]["over source"] == "+5.5"
    assert lines["grad"]["over tent"] == "+7.0"
    assert lines["tent"]["worst against source"] == "-8.0 (Snow)"
    assert lines["source"]["over source"] == ""


def test_a_missing_cell_leaves_the_average_open(panel: Panel) -> None:
    (found,) = panels([e for e in entries() if not (e.cell["variant"] == "tent" and e.column == "snow")])
    row = accuracy_table(found).rows[1]
    assert [cell.text for cell in row.cells] == ["-", "56.0", "-"]


def test_the_best_is_marked_where_the_interval_of_every_difference_leaves_out_zero() -> None:
    (many,) = panels([replace(e, cell={**e.cell, "images": 50_000}) for e in entries()])
    marks = {row.name: [cell.best for cell in row.cells] for row in accuracy_table(many).rows}
    assert marks == {"source": [False] * 3, "tent": [False] * 3, "grad": [True] * 3}


def test_with_three_seeds_the_differences_of_the_seeds_are_what_varies() -> None:
    gains = (2.0, 3.0, 4.0)
    steady = [entry("source", "fog", seed, 50.0 + 10 * seed) for seed in range(3)]
    steady += [entry("tent", "fog", seed, 50.0 + 10 * seed + gain) for seed, gain in enumerate(gains)]
    (panel,) = panels(steady)
    gain = panel.rows[1].gain_over(panel.rows[0], ("fog",))
    assert gain is not None
    assert gain.mean == pytest.approx(3.0)
    low, high = stats.t.interval(0.95, 2, 3.0, stats.sem(gains))
    assert gain.margin == pytest.approx((high - low) / 2)
    assert panel.leader(("fog",)) is panel.rows[1]
