import pytest
from tests.lab.pages.bench.entries import entries

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
    assert marks["grad"] == [(True, False)] * 3
    assert marks["tent"] == [(False, True), (False, False), (False, True)]
    assert table.rows[2].cells[1].plain == "59.0 ± 1.4"


def test_summary_compares_with_source_and_the_best_single_model(panel: Panel) -> None:
    table = summary_table(panel)
    lines = {row.name: dict(zip(table.header[1:], (v.text for v in row.cells), strict=True)) for row in table.rows}
    assert lines["grad"]["over source"] == "+5.5"
    assert lines["grad"]["over tent"] == "+7.0"
    assert lines["tent"]["worst against source"] == "-8.0 (Snow)"
    assert lines["source"]["over source"] == ""


def test_a_missing_cell_leaves_the_average_open(panel: Panel) -> None:
    (found,) = panels([e for e in entries() if not (e.cell["variant"] == "tent" and e.column == "snow")])
    row = accuracy_table(found).rows[1]
    assert [cell.text for cell in row.cells] == ["-", "56.0", "-"]
