import xml.etree.ElementTree as ElementTree

import pytest

from polytta.lab.pages.tables import Table, TableCell, TableRow, as_html, as_latex, as_markdown, as_text

TABLE = Table(
    ("Method", "Fog & rain", "Avg."),
    (
        TableRow("source", (TableCell("50.0"), TableCell("-")), series=0),
        TableRow("<b>_x", (TableCell("60.1", "0.4", best=True), TableCell("49.0", below=True, mark="(a)")), series=1),
    ),
)


def test_text_lines_up_and_stars_the_best() -> None:
    lines = as_text(TABLE).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert "60.1 ± 0.4*" in lines[3]


def test_markdown() -> None:
    assert as_markdown(TABLE).splitlines()[1:] == [
        "|:--|--:|--:|",
        "| source | 50.0 | - |",
        "| &lt;b>_x | **60.1 ± 0.4** | 49.0(a) |",
    ]


def test_latex_escapes_and_counts_columns() -> None:
    made = as_latex(TABLE, "100 % of it", "tab:x")
    assert r"\begin{tabular}{lrr}" in made
    assert r"Method & Fog \& rain & Avg. \\" in made
    assert r"\textbf{60.1} {\scriptsize$\pm$0.4} & 49.0\textsuperscript{(a)} \\" in made
    assert r"\caption{100 \% of it}" in made
    assert made.count(r"\\") == 3


def test_html_is_well_formed_and_escapes() -> None:
    root = ElementTree.fromstring(as_html(TABLE))
    names = ["".join(cell.itertext()) for cell in root.iter("th")]
    assert names == ["Method", "Fog & rain", "Avg.", "source", "<b>_x"]
    kinds = [cell.get("class") for cell in root.iter("td")]
    assert kinds == [None, None, "best", "below"]


@pytest.mark.parametrize("special", ["a_b", "50 %", "$x$", "{", "#1", "~", "^", "\\"])
def test_latex_survives_every_special_letter(special: str) -> None:
    made = as_latex(Table(("h", special), (TableRow(special, (TableCell("1"),)),)), special, "l")
    for letter in set(special) & set("_%$#&"):
        assert f"\\{letter}" in made
