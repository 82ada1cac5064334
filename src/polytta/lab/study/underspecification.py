"""Equally sure, differently right: seeds that end at the same entropy with different parameters and accuracy.

Table 1 of the multi-hypothesis paper. Final entropy is that of the final parameters over images all seeds are judged
on; accuracy is that of the stream, before learning from each image.
"""

from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

from polytta.lab.pages.charts import Axis, Series, heatmap_svg, scatter_svg
from polytta.lab.pages.elements import Plot, facts, figures, note
from polytta.lab.pages.page import Section, render_page
from polytta.lab.pages.tables import Table, TableCell, TableRow, as_html
from polytta.lab.study.evaluate import Measures, evaluate
from polytta.lab.study.solutions import Solutions
from polytta.report.measures import distance_to_source, pairwise_distances

TRUE_TITLE = "Equally sure, differently right"
COLUMNS = ("final entropy", "accuracy", "final accuracy", "distance to source", "mean pairwise distance")


@dataclass(frozen=True, eq=False)
class MeasuredSeeds:
    """The solutions, measured.

    Attributes:
        solutions: one per seed.
        source: the source model on the same images.
        figures: {seed: {column: value}}.
        pairwise: (S, S) distances between solutions.
    """

    solutions: Solutions
    source: Measures
    figures: dict[int, dict[str, float]]
    pairwise: NDArray[np.float64]

    def summary(self, column: str) -> tuple[float, float]:
        """Mean and sample standard deviation over seeds."""
        values = [row[column] for row in self.figures.values()]
        return fmean(values), stdev(values)


def measure(solutions: Solutions) -> MeasuredSeeds:
    """Entropy, accuracy and distances of every solution."""
    own = evaluate(solutions.source, solutions.adapted, solutions.thetas, solutions.x, solutions.labels)
    start = solutions.start
    source = evaluate(solutions.source, solutions.adapted, start.unsqueeze(0), solutions.x, solutions.labels)
    drift = distance_to_source(solutions.thetas, start).tolist()
    pairwise = pairwise_distances(solutions.thetas).numpy().astype(np.float64)
    others = len(solutions.found) - 1
    found = {
        solution.seed: dict(
            zip(
                COLUMNS,
                (
                    float(own.entropy[number]),
                    solution.accuracy,
                    float(own.accuracy[number]),
                    drift[number],
                    float(pairwise[number].sum()) / others,
                ),
                strict=True,
            )
        )
        for number, solution in enumerate(solutions.found)
    }
    return MeasuredSeeds(solutions, source, found, pairwise)


def as_table(study: MeasuredSeeds) -> Table:
    """A row per seed, and their mean and spread."""
    forms = (".3f", ".1f", ".1f", ".3f", ".3f")
    rows = [
        TableRow(f"seed {seed}", tuple(TableCell(format(row[c], form)) for c, form in zip(COLUMNS, forms, strict=True)))
        for seed, row in study.figures.items()
    ]
    total = []
    for column, form in zip(COLUMNS, forms, strict=True):
        mean, spread = study.summary(column)
        total.append(TableCell(format(mean, form), spread=format(spread, form)))
    return Table(
        (study.solutions.cell.variant, *COLUMNS),
        (*rows, TableRow("mean", tuple(total))),
    )


def verdict(study: MeasuredSeeds) -> str:
    """What the figures say, in one sentence; relative spreads make entropy and accuracy comparable."""
    (entropy, entropy_spread), (accuracy, accuracy_spread) = study.summary("final entropy"), study.summary("accuracy")
    distance = study.summary("mean pairwise distance")[0] / max(study.summary("distance to source")[0], 1e-12)
    found = "" if differ_in_accuracy_alone(study) else " Equally sure and differently right they are not here."
    return (
        f"Entropy ends at {entropy:.3f} ± {entropy_spread:.3f} nats ({_percent(entropy_spread, entropy)} of it) while "
        f"accuracy is {accuracy:.1f} ± {accuracy_spread:.1f} points ({_percent(accuracy_spread, accuracy)}); two seeds "
        f"end {100 * distance:.0f} % as far from each other as from the source model.{found}"
    )


def differ_in_accuracy_alone(study: MeasuredSeeds) -> bool:
    """Whether seeds differ in accuracy by a hundredth and by two images at least, and less in entropy than in that."""
    (entropy, entropy_spread), (accuracy, accuracy_spread) = study.summary("final entropy"), study.summary("accuracy")
    accuracies = [row["accuracy"] for row in study.figures.values()]
    two_images = 200 / (study.solutions.cell.images or len(study.solutions.labels))
    # Rounded figures may miss either by the last digit.
    if max(accuracies) - min(accuracies) < max(1.0, two_images) - 1e-6 or not entropy or not accuracy:
        return False
    return entropy_spread / entropy < accuracy_spread / accuracy


def as_page(study: MeasuredSeeds) -> str:
    """The study as one HTML page."""
    cell = study.solutions.cell
    seeds = list(study.figures)
    points = [
        Series(f"seed {seed}", 1 + number % 11, np.array([row["final entropy"]]), np.array([row["accuracy"]]))
        for number, (seed, row) in enumerate(study.figures.items())
    ]
    x = Axis.over("final entropy (nats)", [float(p.x[0]) for p in points])
    y = Axis.over("accuracy over the stream", [float(p.y[0]) for p in points], " %")
    plots = (
        Plot(
            TRUE_TITLE if differ_in_accuracy_alone(study) else "Entropy and accuracy of the seeds",
            scatter_svg(points, x, y, "Accuracy against final entropy, per seed"),
            "Side by side: the objective cannot tell these solutions apart. Far apart in height: the labels can.",
        ),
        Plot(
            "Distances between solutions",
            heatmap_svg(study.pairwise, [str(seed) for seed in seeds], "Distances between seeds", ".2f"),
            "Euclidean, between final norm parameters.",
        ),
    )
    settings = {
        "Cell": cell.words,
        "Images": f"{len(study.solutions.x)} judged on",
        "Source model": f"entropy {study.source.entropy[0]:.3f}, accuracy {study.source.accuracy[0]:.1f} % on them",
        "Weights SHA-256": study.solutions.source.weights_sha256,
    }
    return render_page(
        "Underspecification",
        f"{cell.variant} adapts the same model to the same images from {len(seeds)} seeds. {verdict(study)}",
        (
            Section("seeds", "Seeds", (as_html(as_table(study)), note("Last line: mean ± sample standard deviation."))),
            Section("plots", "Solutions", (figures(plots),)),
            Section("facts", "Settings", (facts(settings),)),
        ),
    )


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"
