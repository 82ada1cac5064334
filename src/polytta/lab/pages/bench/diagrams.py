"""The diagrams of one panel, from its full records."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from polytta.lab.bench.record import Record
from polytta.lab.pages.bench.panel import Panel, Row
from polytta.lab.pages.bench.short_names import short_name
from polytta.lab.pages.charts import (
    Axis,
    Series,
    dotted_line_svg,
    heatmap_svg,
    lines_svg,
    matrix_svg,
    scatter_svg,
    trajectories_svg,
)
from polytta.lab.pages.confidence import risk_plot, weights_plot
from polytta.lab.pages.elements import Plot

Records = Mapping[str, Record]


def cost_plot(panel: Panel) -> Plot | None:
    """Accuracy against speed."""
    points = []
    for number, row in enumerate(panel.rows):
        accuracy, speed = row.average(panel.columns), row.speed
        if accuracy is not None and speed is not None:
            points.append(Series(row.name, number, np.array([speed]), np.array([accuracy.mean])))
    if len(points) < 2:
        return None
    x = Axis.logarithmic("images per second", [float(p.x[0]) for p in points])
    y = Axis.over("accuracy", [float(p.y[0]) for p in points], " %")
    note = "Up is better, right is cheaper. Prediction and learning together, as timed in the records."
    return Plot("Gain against cost", scatter_svg(points, x, y, "Accuracy against images per second, per method"), note)


def stream_plot(panel: Panel, records: Records) -> Plot | None:
    """Accuracy so far, averaged over columns and seeds."""
    shares = np.linspace(0.1, 1.0, 46)
    lines = []
    for number, row in enumerate(panel.rows):
        found = _of(row, records)
        if found:
            lines.append(Series(row.name, number, 100 * shares, np.mean([_so_far(r, shares) for r in found], axis=0)))
    if not lines:
        return None
    y = Axis.over("accuracy so far", np.concatenate([line.y for line in lines]).tolist(), " %")
    x = Axis("share of the stream", (0.0, 25.0, 50.0, 75.0, 100.0), " %")
    note = "Share of all images up to here that were right, averaged over corruptions and seeds."
    return Plot(
        "Accuracy over the stream", lines_svg(lines, x, y, "Accuracy so far along the stream, per method"), note
    )


def calibration_plots(panel: Panel, records: Records) -> list[Plot]:
    """A reliability diagram per row."""
    plots = []
    for number, row in enumerate(panel.rows):
        found = _of(row, records)
        ece = row.average(panel.columns, "ece")
        if not found or ece is None:
            continue
        line, counts = _pooled(
            row.name, number, [(r.reliability.confidence, r.reliability.accuracy, r.reliability.count) for r in found]
        )
        axes = (Axis("confidence", (0.0, 0.5, 1.0)), Axis("share right", (0.0, 0.5, 1.0)))
        svg = dotted_line_svg(line, *axes, f"Reliability of {row.name}", diagonal=True, counts=counts)
        said = f"ECE {ece.mean:.3f}; on the dashed line confidence is earned. {_counted(counts)}"
        plots.append(Plot(row.name, svg, said))
    return plots


def disagreement_plots(panel: Panel, records: Records) -> list[Plot]:
    """Error at each level of disagreement, per population."""
    plots = []
    for number, row in enumerate(panel.rows):
        found = [r for r in _of(row, records) if r.particle_count > 1]
        if not found:
            continue
        bins = [(d.disagreement, d.error, d.count) for d in (r.disagreement_vs_error for r in found)]
        line, counts = _pooled(row.name, number, bins, edges=np.linspace(0.0, 1.0, 11))
        axes = (Axis("disagreement of particles", (0.0, 0.5, 1.0)), Axis("share wrong", (0.0, 0.5, 1.0)))
        svg = dotted_line_svg(line, *axes, f"Error against disagreement of {row.name}", diagonal=False, counts=counts)
        said = f"Where it rises, answers that particles disagree on are less to be trusted. {_counted(counts)}"
        plots.append(Plot(row.name, svg, said))
    return plots


def particle_plots(panel: Panel, records: Records) -> list[Plot]:
    """Trajectories of each population on the first column, and how alike its particles end."""
    plots = []
    first = short_name(panel.columns[0])
    for row in panel.rows:
        found = [r for r in _of(row, records) if r.particle_count > 1]
        if not found or not row.adapts:
            continue
        record = min(found, key=lambda r: (_column(r) != first, r.cell.seed))
        path = np.array(record.particles.projection)
        names = [str(i + 1) for i in range(path.shape[1])]
        paths = [Series(name, 1 + i % 11, path[:, i, 0], path[:, i, 1]) for i, name in enumerate(names)]
        where = f"{_column(record)}, seed {record.cell.seed}"
        plots.append(
            Plot(
                f"{row.name}: trajectories",
                trajectories_svg(paths, f"Paths of the particles of {row.name}"),
                f"{where}. From the source model (ring), on the two directions in which they moved most.",
            )
        )
        kernel = record.particles.kernel
        values = np.array(kernel if kernel is not None else record.particles.pairwise)
        what = "kernel" if kernel is not None else "distances"
        plots.append(
            Plot(
                f"{row.name}: {what}",
                heatmap_svg(values, names, f"{what} between the particles of {row.name}"),
                f"{where}. " + ("Similarity" if kernel is not None else "Distance between parameters") + " at the end.",
            )
        )
    return plots


def trust_plots(panel: Panel, records: Records) -> list[Plot]:
    """Which hypotheses were trusted at the end of each column, per population that evidence weighs."""
    plots = []
    for row in panel.rows:
        found = [r for r in _of(row, records) if r.particles.weights]
        if not found:
            continue
        names = found[0].particles.names
        of_column: dict[str, list[tuple[float, ...]]] = {}
        for record in found:
            if record.particles.names == names:
                of_column.setdefault(_column(record), []).append(record.particles.weights)
        values = np.array([np.mean(weights, axis=0) for weights in of_column.values()])
        svg = matrix_svg(values, list(of_column), names, f"Weights of the hypotheses of {row.name}")
        plots.append(Plot(f"{row.name}: who was trusted", svg, "Weights at the end of the stream, mean over seeds."))
    return plots


def selective_plot(panel: Panel, records: Records) -> Plot | None:
    """What is wrong of the answers each row is surest of."""
    return risk_plot({row.name: _of(row, records) for row in panel.rows})


def weights_plots(panel: Panel, records: Records) -> list[Plot]:
    """How the trust in hypotheses changed on the first column, per population that evidence weighs."""
    first = short_name(panel.columns[0])
    plots = []
    for row in panel.rows:
        found = sorted(_of(row, records), key=lambda r: (_column(r) != first, r.cell.seed))
        if found:
            plot = weights_plot(row.name, found[0], f"{_column(found[0])}, seed {found[0].cell.seed}")
            plots += [plot] if plot is not None else []
    return plots


def _of(row: Row, records: Records) -> list[Record]:
    return [records[e.key] for entries in row.entries.values() for e in entries if e.key in records]


def _column(record: Record) -> str:
    corruption = record.cell.corruption
    return short_name(corruption) if isinstance(corruption, str) else "all corruptions"


def _so_far(record: Record, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    ends = np.array(record.curves.position, np.float64)
    sizes = np.diff(ends, prepend=0.0)
    running = np.cumsum(np.array(record.curves.accuracy) * sizes) / ends
    return np.interp(shares * ends[-1], ends, running)


def _pooled(
    name: str,
    number: int,
    parts: Sequence[tuple[Sequence[float], Sequence[float], Sequence[int]]],
    edges: NDArray[np.float64] | None = None,
) -> tuple[Series, list[float]]:
    """Bins of several records as one, with their images; ``edges`` of coarser bins, where the records' own differ."""
    x, y, n = (np.concatenate([np.asarray(part[i], np.float64) for part in parts]) for i in range(3))
    edges = np.linspace(0.0, 1.0, 16) if edges is None else edges
    place = np.clip(np.digitize(x, edges[1:-1]), 0, len(edges) - 2)
    count = np.bincount(place, n, len(edges) - 1)
    some = count > 0
    means = [np.bincount(place, values * n, len(edges) - 1)[some] / count[some] for values in (x, y)]
    return Series(name, number, means[0], means[1]), count[some].tolist()


def _counted(counts: Sequence[float]) -> str:
    """How much a curve stands on."""
    return f"{sum(counts):,.0f} images, {min(counts):,.0f} to {max(counts):,.0f} a dot; its area shows how many."
