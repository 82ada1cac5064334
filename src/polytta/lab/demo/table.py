"""The demo's table, as cells for the report and as text for the terminal."""

from polytta.lab.demo.outcome import Outcome
from polytta.lab.pages.page import Table


def demo_table(outcome: Outcome) -> Table:
    """One line per row."""
    header = (
        "method",
        *(segment.name.replace("_", " ") for segment in outcome.segments),
        "mean accuracy",
        "gain over source",
        "calibration error",
        "images/s",
    )
    lines = []
    for row in outcome.settings.rows:
        score = outcome.score(row)
        adapts = row is not outcome.settings.rows[0]
        lines.append(
            (
                row.name,
                *(f"{100 * accuracy:.1f} %" for accuracy in score.accuracy),
                f"{100 * score.mean_accuracy:.1f} %",
                f"{100 * score.gain:+.1f} ± {100 * score.gain_error:.1f}" if adapts else "",
                f"{score.calibration_error:.3f}",
                f"{score.images_per_second:.0f}",
            )
        )
    return Table(header, tuple(lines))


def as_text(table: Table) -> str:
    """Columns lined up, the first to the left and the others to the right."""
    rows = (table.header, *table.rows)
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.header))]
    lines = [
        "  ".join(cell.ljust(width) if not column else cell.rjust(width) for column, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    return "\n".join((lines[0], "-" * len(lines[0]), *lines[1:]))
