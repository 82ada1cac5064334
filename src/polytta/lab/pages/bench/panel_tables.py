"""Panels as tables: the paper's layout, and a summary that says who gains and what it costs."""

from polytta.lab.pages.bench.panel import Panel, Row
from polytta.lab.pages.bench.short_names import short_name
from polytta.lab.pages.stat import MISSING, Stat, stat_cell
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
    best = [max((s.mean for s in column if s is not None), default=None) for column in zip(*stats, strict=True)]
    rows = tuple(
        TableRow(
            row.name,
            tuple(
                _accuracy_cell(stat, top, None if ref is None else ref.mean)
                for stat, top, ref in zip(own, best, source, strict=True)
            ),
            series=number,
        )
        for number, (row, own) in enumerate(zip(panel.rows, stats, strict=True))
    )
    return Table(tuple(header), rows)


def summary_table(panel: Panel) -> Table:
    """Per row: accuracy, gains, the corruption it does worst on against source, calibration and speed."""
    rows = []
    accuracies = [row.average(panel.columns) for row in panel.rows]
    best = max((stat.mean for stat in accuracies if stat is not None), default=None)
    for number, (row, accuracy) in enumerate(zip(panel.rows, accuracies, strict=True)):
        rows.append(
            TableRow(
                row.name,
                (
                    _accuracy_cell(accuracy, best, None),
                    _number_cell(row.average(panel.columns, "top5"), ".1f"),
                    _gain_cell(accuracy, panel.source, panel, own=row),
                    TableCell("") if row.is_source else _gain_cell(accuracy, panel.best_single, panel, own=row),
                    _worst_cell(row, panel),
                    _number_cell(row.average(panel.columns, "ece"), ".3f"),
                    _number_cell(row.average(panel.columns, "nll"), ".3f"),
                    _number_cell(row.average(panel.columns, "brier"), ".3f"),
                    MISSING if row.speed is None else TableCell(f"{row.speed:.0f}"),
                ),
                series=number,
            )
        )
    best_single = "single" if panel.best_single is None else panel.best_single.name
    header = ("Method", "Accuracy", "Top-5", "over source", f"over {best_single}", "worst against source")
    return Table((*header, "ECE", "NLL", "Brier", "images/s"), tuple(rows))


def _accuracy_cell(stat: Stat | None, best: float | None, reference: float | None) -> TableCell:
    if stat is None:
        return MISSING
    # What reads the same is as good, and what reads the same as the reference is not below it.
    is_best = best is not None and f"{stat.mean:.1f}" == f"{best:.1f}"
    return stat_cell(stat, best=is_best, below=reference is not None and stat.mean < reference - 0.05)


def _number_cell(stat: Stat | None, form: str) -> TableCell:
    return MISSING if stat is None else TableCell(format(stat.mean, form))


def _gain_cell(accuracy: Stat | None, other: Row | None, panel: Panel, own: Row) -> TableCell:
    reference = None if other is None or other is own else other.average(panel.columns)
    if accuracy is None or reference is None:
        return TableCell("")
    return _signed_cell(accuracy.mean - reference.mean)


def _worst_cell(row: Row, panel: Panel) -> TableCell:
    if panel.source is None or row.is_source:
        return TableCell("")
    gains = []
    for column in panel.columns:
        own, reference = row.stat(column), panel.source.stat(column)
        if own is not None and reference is not None:
            gains.append((own.mean - reference.mean, column))
    if not gains:
        return MISSING
    gain, column = min(gains)
    where = "" if len(panel.columns) == 1 else f" ({short_name(column)})"
    return _signed_cell(gain, where)


def _signed_cell(gain: float, where: str = "") -> TableCell:
    shown = round(gain, 1) + 0.0  # no minus before a zero
    return TableCell(f"{shown:+.1f}{where}", below=shown < 0)
