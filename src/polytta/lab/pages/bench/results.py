"""``results.md`` and its LaTeX twin: the figures alone, the same bytes from the same records."""

from collections.abc import Sequence

from polytta.lab.pages.bench.panel import Panel
from polytta.lab.pages.bench.panel_tables import accuracy_table, summary_table
from polytta.lab.pages.tables import as_latex, as_markdown, markdown_text

NOTE = (
    "Accuracy in percent of predictions made before learning from the image. First table of a panel: mean ± sample "
    "standard deviation over seeds, which also choose the images where a stream is a part of a dataset (in label "
    "shifts they order the classes alone); in bold who is ahead of all others by more than the 95 % interval of the "
    "difference. Second table: ± is half a 95 % interval, of gains over the differences of three seeds or more, else "
    "over the number of images as if no image were shared, which is on the wide side (`polytta compare DIR --rows A B` "
    "pairs them). Gains are in points: over the source model, and over the best row that adapts a single model. ECE "
    "(15 bins), NLL and Brier score: lower is better."
)


def results_markdown(panels: Sequence[Panel], facts: Sequence[str]) -> str:
    """All tables, and what pins them."""
    parts = ["# Results", "Made by `polytta report`; do not edit.", NOTE]
    for panel in panels:
        parts += [
            f"## {markdown_text(panel.title)}",
            f"{markdown_text(panel.description)}.",
            as_markdown(accuracy_table(panel)),
        ]
        parts.append(as_markdown(summary_table(panel)))
    if facts:
        parts += ["## What pins these results", "\n".join(f"- {markdown_text(fact)}" for fact in facts)]
    return "\n\n".join(parts) + "\n"


def tables_latex(panels: Sequence[Panel]) -> str:
    """The accuracy tables, for ``\\input`` under booktabs and graphicx."""
    head = "% Made by polytta report; needs \\usepackage{booktabs,graphicx}."
    tables = [
        as_latex(accuracy_table(panel), f"{panel.title}: accuracy (%). {panel.description}.", f"tab:{panel.anchor}")
        for panel in panels
    ]
    return "\n\n".join((head, *tables)) + "\n"
