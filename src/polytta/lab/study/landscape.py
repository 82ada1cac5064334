"""The plane through three adapted solutions: entropy, test loss and accuracy between and around them.

Figure "interpolation" of the multi-hypothesis paper. A point of the plane is θ = θ₁ + a·e₁ + b·e₂ with e₁ along θ₂ - θ₁
and e₂ the part of θ₃ - θ₁ across it, both of length one, so that both axes measure distances between parameters.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polytta.errors import ConfigError, StateError
from polytta.lab.pages.charts import Series, surface_svg
from polytta.lab.pages.elements import Plot, facts, figures, note
from polytta.lab.pages.page import Section, render_page
from polytta.lab.pages.tables import Table, TableCell, TableRow, as_html
from polytta.lab.study.evaluate import Measures, evaluate
from polytta.lab.study.solutions import Solutions

# Share of the triangle's extent shown around it.
_MARGIN = 0.35


@dataclass(frozen=True, eq=False)
class PlaneSurvey:
    """Measures over a grid on the plane.

    Attributes:
        solutions: the three.
        x: places along the first edge.
        y: places across it.
        surface: measures at all points, row by row from the lowest y.
        corners: (3, 2) places of the solutions.
        source: (2,) place of the source model's projection.
        off_plane: distance of the source model from the plane.
        own: measures of the three solutions, their mean, and the source model itself.
    """

    solutions: Solutions
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    surface: Measures
    corners: NDArray[np.float64]
    source: NDArray[np.float64]
    off_plane: float
    own: Measures


def survey(solutions: Solutions, resolution: int) -> PlaneSurvey:
    """Measures ``resolution`` x ``resolution`` points; a progress bar shows on stderr."""
    if len(solutions.found) != 3:
        raise ConfigError(f"seeds: got {len(solutions.found)}; allowed are exactly 3, which a plane goes through.")
    if resolution < 2:
        raise ConfigError(f"resolution: got {resolution}; allowed is at least 2.")
    thetas = solutions.thetas.double()
    axes = _axes(thetas)
    corners = ((thetas - thetas[0]) @ axes.T).numpy()
    start = solutions.start.double()
    place = (start - thetas[0]) @ axes.T
    off_plane = float((start - thetas[0] - place @ axes).norm())
    x, y = (_span(corners[:, i], float(place[i]), resolution) for i in range(2))
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    grid = thetas[0] + torch.from_numpy(points) @ axes
    judged = (solutions.source, solutions.adapted)
    surface = evaluate(*judged, grid.to(solutions.thetas.dtype), solutions.x, solutions.labels, "surveying")
    named = torch.cat([thetas, thetas.mean(dim=0, keepdim=True), start.unsqueeze(0)]).to(solutions.thetas.dtype)
    own = evaluate(*judged, named, solutions.x, solutions.labels)
    return PlaneSurvey(solutions, x, y, surface, corners, place.numpy(), off_plane, own)


def as_table(plane: PlaneSurvey) -> Table:
    """The corners, the middle of the triangle, and the source model."""
    names = [f"seed {solution.seed}" for solution in plane.solutions.found]
    measures = plane.own
    rows = [
        TableRow(
            name,
            (
                TableCell(f"{measures.entropy[i]:.3f}"),
                TableCell(f"{measures.loss[i]:.3f}"),
                TableCell(f"{measures.accuracy[i]:.1f}"),
            ),
        )
        for i, name in enumerate((*names, "their mean", "source"))
    ]
    return Table(("Parameters", "entropy", "test loss", "accuracy"), tuple(rows))


def as_page(plane: PlaneSurvey) -> str:
    """The study as one HTML page."""
    cell = plane.solutions.cell
    settings = {
        "Cell": cell.words,
        "Points": f"{len(plane.x)} x {len(plane.y)}, {len(plane.solutions.x)} images each",
        "Source model": f"{plane.off_plane:.3g} away from the plane; its projection is marked",
        "Weights SHA-256": plane.solutions.source.weights_sha256,
    }
    return render_page(
        "Between three solutions",
        f"{cell.variant} adapts the same model from three seeds; their final parameters span a plane. Adaptation sees "
        "the entropy alone. Where low entropy and low test loss do not coincide, it cannot know which way to go.",
        (
            Section("surfaces", "The plane", (figures(plots(plane)), note("Dark is low, bright is high."))),
            Section("corners", "Its corners", (as_html(as_table(plane)),)),
            Section("facts", "Settings", (facts(settings),)),
        ),
    )


def plots(plane: PlaneSurvey) -> tuple[Plot, ...]:
    """Entropy, test loss and accuracy from above."""
    marks = [
        Series(f"seed {solution.seed}", number, *plane.corners[number, :, None])
        for number, solution in enumerate(plane.solutions.found)
    ]
    marks.append(Series("mean", 0, *plane.corners.mean(axis=0)[:, None]))
    marks.append(Series("source, projected", 0, *plane.source[:, None]))
    surface = plane.surface
    return tuple(
        Plot(
            title,
            surface_svg(
                values.reshape(len(plane.y), len(plane.x)),
                plane.x,
                plane.y,
                marks,
                unit,
                f"{title} on the plane through three solutions",
            ),
            caption,
        )
        for title, values, unit, caption in (
            ("Entropy", surface.entropy, "nats", "What adaptation lowers; needs no labels."),
            ("Test loss", surface.loss, "nats", "Cross-entropy with the true labels, which adaptation never sees."),
            ("Accuracy", surface.accuracy, "%", "Share of images that are right."),
        )
    )


def _axes(thetas: Tensor) -> Tensor:
    """(2, D) orthonormal directions of the plane."""
    along, across = thetas[1] - thetas[0], thetas[2] - thetas[0]
    length = along.norm()
    if length > 0:
        across = across - along * (across @ along) / length**2
    if length == 0 or across.norm() <= 1e-9 * length:
        raise StateError(
            "seeds: got three solutions on one line, so there is no plane; allowed are seeds that part, as more images "
            "or a larger learning rate let them."
        )
    return torch.stack([along / length, across / across.norm()])


def _span(corners: NDArray[np.float64], source: float, resolution: int) -> NDArray[np.float64]:
    low, high = min(*corners, source), max(*corners, source)
    margin = _MARGIN * (high - low)
    return np.linspace(low - margin, high + margin, resolution)
