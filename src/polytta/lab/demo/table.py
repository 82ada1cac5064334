"""The demo's table."""

from polytta.lab.demo.run import DemoRun
from polytta.lab.demo.scores import row_score
from polytta.lab.pages.tables import Table, TableCell, TableRow


def demo_table(run: DemoRun) -> Table:
    """One line per row; the first has no gain."""
    corruptions = (name.replace("_", " ") for name in run.options.corruptions)
    first = next(iter(run.options.rows)).lower()
    header = ("method", *corruptions, "mean accuracy", f"gain over {first}", "calibration error", "images/s")
    rows = []
    for number, row in enumerate(run.options.rows):
        score = row_score(run, row)
        texts = (
            *(f"{100 * accuracy:.1f} %" for accuracy in score.accuracy),
            f"{100 * score.mean_accuracy:.1f} %",
            f"{100 * score.gain:+.1f} ± {100 * score.gain_error:.1f}" if number else "",
            f"{score.calibration_error:.3f}",
            f"{score.images_per_second:.0f}",
        )
        rows.append(TableRow(row, tuple(map(TableCell, texts)), series=number))
    return Table(header, tuple(rows))
