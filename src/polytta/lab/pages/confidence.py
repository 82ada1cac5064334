"""Plots of records that tell what confidence is worth, and whom a population trusted."""

from collections.abc import Mapping, Sequence

import numpy as np

from polytta.lab.bench.record import Record
from polytta.lab.pages.charts import Axis, Series, lines_svg, timeline_svg
from polytta.lab.pages.elements import Plot

_SHARES = np.linspace(0.05, 1.0, 20)


def risk_plot(rows: Mapping[str, Sequence[Record]]) -> Plot | None:
    """Percent wrong among the most confident answers, a line per row; None where no record tells."""
    lines = []
    for number, (name, records) in enumerate(rows.items()):
        known = [record.selective_risk for record in records if record.selective_risk.coverage]
        if known:
            risk = np.mean([np.interp(_SHARES, one.coverage, one.risk) for one in known], axis=0)
            lines.append(Series(name, number, 100 * _SHARES, 100 * risk))
    if not lines:
        return None
    svg = lines_svg(
        lines,
        Axis("share of images answered, the surest first", (0.0, 25.0, 50.0, 75.0, 100.0), " %"),
        Axis.over("wrong among them", [0.0, *np.concatenate([line.y for line in lines]).tolist()], " %"),
        "Share of wrong answers among the most confident ones, per method",
    )
    note = "Down is better. At 80 % the least sure fifth goes unanswered; AURC is the area under the line."
    return Plot("Risk of the answers given", svg, f"{note} Averaged over corruptions and seeds.")


def weights_plot(name: str, record: Record, where: str) -> Plot | None:
    """The weights of a population's hypotheses along its stream; None where evidence weighs nobody."""
    curves, names = record.curves, record.particles.names
    if not curves.weights or not names:
        return None
    svg = timeline_svg(
        np.array(curves.weights),
        curves.position,
        names,
        "images seen",
        f"Weights of the hypotheses of {name} over time",
    )
    return Plot(f"{name}: trust over time ({where})", svg, "Weight of each hypothesis; all together are 1.")
