"""Panels as tables: the paper's layout, and a summary that says who gains and what it costs."""

from polytta.lab.pages.bench.panel import Panel, Row
from polytta.lab.pages.bench.short_names import short_name
from polytta.lab.pages.stat import MISSING, Stat, gain_cell, interval_cell, stat_cell
from polytta.lab.pages.tables import Table, TableCell, TableRow


def accuracy_table(panel: Panel) -> Table:
    """Accuracy per corruption and on average, mean ± standard deviation over seeds."""
    columns = list(panel.columns)
    header = ["Method", *map(short_name, columns)]
    stats = [[row.stat(column) for column in columns] for row in panel.rows]
    source = [None if panel.source is None else panel.source.stat(column) for column in columns]
    if len(columns) > 1:
        header.append("Avg.")
        stats = [[*own, row.average(columns)] for own, row in zip(stats, panel.rows, strict=True)]
        source.append(None if panel.source is None else panel.source.average(columns))
    places = [(column,) for column in columns] + ([tuple(columns)] if len(columns) > 1 else [])
    leaders = [panel.leader(place) for place in places]
    rows = tuple(
        TableRow(
            row.name,
            tuple(
                _accuracy_cell(stat, row is leader, None if ref is None else ref.mean)
                for stat, leader, ref in zip(own, leaders, source, strict=True)
            ),
            series=number,
        )
        for number, (row, own) in enumerate(zip(panel.rows, stats, strict=True))
    )
    return Table(tuple(header), rows)


def summary_table(panel: Panel) -> Table:
    """Per row: accuracy, gains, the corruption it does worst on against source, calibration and speed."""
    rows = []
    leader = panel.leader(panel.columns)
    areas = [row.average(panel.columns, "aurc") for row in panel.rows]
    # Older records do not have it, and a column of dashes says nothing.
    has_areas = any(area is not None for area in areas)
    for number, row in enumerate(panel.rows):
        rows.append(
            TableRow(
                row.name,
                (
                    interval_cell(row.average(panel.columns), best=row is leader),
                    _number_cell(row.average(panel.columns, "top5"), ".1f"),
                    _gain_cell(row, panel.source, panel),
                    TableCell("") if row.is_source else _gain_cell(row, panel.best_single, panel),
                    _worst_cell(row, panel),
                    _number_cell(row.average(panel.columns, "ece"), ".3f"),
                    _number_cell(row.average(panel.columns, "nll"), ".3f"),
                    _number_cell(row.average(panel.columns, "brier"), ".3f"),
                    *([_number_cell(areas[number], ".3f")] if has_areas else []),
                    MISSING if row.speed is None else TableCell(f"{row.speed:.0f}"),
                ),
                series=number,
            )
        )
    best_single = "single" if panel.best_single is None else panel.best_single.name
    header = ("Method", "Accuracy", "Top-5", "over source", f"over {best_single}", "worst against source")
    measures = ("ECE", "NLL", "Brier", *(["AURC"] if has_areas else []))
    return Table((*header, *measures, "images/s"), tuple(rows))


def _accuracy_cell(stat: Stat | None, best: bool, reference: float | None) -> TableCell:
    # What reads the same as the reference is not below it.
    below = stat is not None and reference is not None and stat.mean < reference - 0.05
    return stat_cell(stat, best=best, below=below)


def _number_cell(stat: Stat | None, form: str) -> TableCell:
    return MISSING if stat is None else TableCell(format(stat.mean, form))


def _gain_cell(row: Row, other: Row | None, panel: Panel) -> TableCell:
    gain = None if other is None or other is row else row.gain_over(other, panel.columns)
    return TableCell("") if gain is None else gain_cell(gain)


def _worst_cell(row: Row, panel: Panel) -> TableCell:
    if panel.source is None or row.is_source:
        return TableCell("")
    gains = []
    for column in panel.columns:
        gain = row.gain_over(panel.source, (column,))
        if gain is not None:
            gains.append((gain.mean, column, gain))
    if not gains:
        return MISSING
    _, column, gain = min(gains, key=lambda found: found[:2])
    return gain_cell(gain, "" if len(panel.columns) == 1 else f" ({short_name(column)})")
