"""Measured beside published; and the difference, where both are of the same images."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import ascii_lowercase

from polytta.lab.pages.bench.short_names import SHORT_NAMES
from polytta.lab.pages.stat import MISSING, Stat, stat_cell
from polytta.lab.pages.tables import Table, TableCell, TableRow
from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.published import PublishedRow
from polytta.lab.reproduce.recipe import ResultTable

AVERAGE = "average"
_NAMES = {**SHORT_NAMES, AVERAGE: "Avg.", "top5": "top-5"}

Measured = Mapping[tuple[str, str], Stat]


def comparison_table(
    title: str,
    rows: Sequence[PublishedRow],
    columns: Sequence[str],
    measured: Measured,
    place: Place,
    digits: int = 1,
    ranked_by: str | None = AVERAGE,
) -> ResultTable:
    """Two rows per method, and a third with the difference where data and models are the paper's, all of them.

    Args:
        title: of the table.
        rows: published ones, in their order.
        columns: to show, in order.
        measured: {(method, column): mean and spread over seeds}.
        place: where it was measured.
        digits: after the point.
        ranked_by: column that orders the methods; None names no order.
    """
    comparable = not (place.is_bundled or place.quick)
    marks: dict[str, str] = {}
    shown: list[TableRow] = []
    for row in rows:
        rows_of_method = _three_rows(row, columns, measured, digits, marks)
        shown += rows_of_method if comparable else _without_difference(rows_of_method)
    remarks = [f"({mark}) {remark}." for remark, mark in marks.items()]
    if ranked_by is not None and not place.quick:
        remarks.insert(0, _order_remark(rows, measured, ranked_by))
    seeds = max((stat.seeds for stat in measured.values()), default=0)
    if seeds > 1:
        remarks.insert(0, f"Measured: mean ± sample standard deviation over {seeds} seeds.")
    if place.quick:
        remarks.insert(0, "A few images show that it works; they say nothing about the published figures.")
    elif place.is_bundled:
        remarks.insert(0, "Published: another dataset and other models, so orders compare and levels do not.")
    header = ("", *(_NAMES.get(column, column) for column in columns))
    return ResultTable(title, Table(header, tuple(shown)), tuple(remarks))


def _three_rows(
    row: PublishedRow, columns: Sequence[str], measured: Measured, digits: int, marks: dict[str, str]
) -> list[TableRow]:
    own, printed, apart = [], [], []
    for column in columns:
        stat, figure = measured.get((row.method, column)), row.figures.get(column)
        own.append(stat_cell(stat, digits))
        if figure is None:
            printed.append(MISSING)
        else:
            mark = "" if figure.remark is None else _mark(figure.remark, marks)
            printed.append(TableCell(f"{figure.value:.{digits}f}", mark=f"({mark})" if mark else ""))
        both = None if stat is None or figure is None else stat.mean - figure.value
        apart.append(MISSING if both is None else TableCell(f"{both:+.{digits}f}"))
    return [
        TableRow(row.method, tuple(own), part=True),
        TableRow("  published", tuple(printed), part=True),
        TableRow("  difference", tuple(apart)),
    ]


def _without_difference(rows: Sequence[TableRow]) -> list[TableRow]:
    own, printed, _ = rows
    return [own, replace(printed, part=False)]


def _mark(remark: str, marks: dict[str, str]) -> str:
    if remark not in marks:
        number = len(marks)
        marks[remark] = ascii_lowercase[number % 26] * (1 + number // 26)
    return marks[remark]


def _order_remark(rows: Sequence[PublishedRow], measured: Measured, column: str) -> str:
    ours = {row.method: measured[row.method, column].mean for row in rows if (row.method, column) in measured}
    theirs = {row.method: row.figures[column].value for row in rows if column in row.figures}
    orders = f"measured: {_ranked(ours)}; published: {_ranked(theirs)}"
    return f"Best to worst by {_NAMES.get(column, column)}, {orders}."


def _ranked(values: Mapping[str, float]) -> str:
    """Names from best to worst; = between those that print the same."""
    places: dict[str, list[str]] = {}
    for name in sorted(values, key=lambda name: -values[name]):
        places.setdefault(f"{values[name]:.1f}", []).append(name)
    return ", ".join(" = ".join(names) for names in places.values())
