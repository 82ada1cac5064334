import numpy as np
import pytest
from tests.lab.pages.charts.drawn import parsed, points, texts

from polytta.lab.pages.charts import Series, trajectories_svg


def test_paths_go_from_the_ring_to_their_dots() -> None:
    paths = [
        Series("1", 1, np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.1, 0.0])),
        Series("<2>", 2, np.array([0.0, -1.0, -2.0]), np.array([0.0, 0.5, 1.0])),
    ]
    root = parsed(trajectories_svg(paths, 'a "chart"'))
    assert root.get("aria-label") == 'a "chart"'
    assert "<2>" in texts(root)
    *dots, ring = ((float(dot.get("cx", "")), float(dot.get("cy", ""))) for dot in root.iter("circle"))
    drawn = [points(curve) for curve in root.iter("polyline")]
    assert [path[0] for path in drawn] == [ring, ring]
    assert [path[-1] for path in drawn] == dots


def test_particles_that_never_moved_make_a_chart() -> None:
    still = Series("1", 1, np.zeros(3), np.zeros(3))
    (curve,) = parsed(trajectories_svg([still], "still")).iter("polyline")
    assert points(curve)[0] == pytest.approx(points(curve)[-1])
