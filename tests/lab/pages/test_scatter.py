import xml.etree.ElementTree as ElementTree
from itertools import combinations

import numpy as np
import pytest

from polytta.lab.pages.charts import Axis, Series
from polytta.lab.pages.scatter import Box, place_names, scatter_svg


@pytest.mark.parametrize("seed", range(5))
def test_names_cover_neither_points_nor_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    places = [(float(x), float(y)) for x, y in rng.uniform((100, 100), (400, 200), (12, 2))]
    names = [f"method {number}" for number in range(12)]
    within = Box(50.0, 0.0, 560.0, 300.0)
    boxes = place_names(places, names, within)
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    points = [Box(x - 5, y - 5, x + 5, y + 5) for x, y in places]
    assert not any(box.overlaps(point) for box in boxes for point in points)
    assert all(within.left <= box.left and box.right <= within.right for box in boxes)


def test_a_lonely_point_has_its_name_to_the_right() -> None:
    (box,) = place_names([(100.0, 100.0)], ["deyo"], Box(0.0, 0.0, 560.0, 300.0))
    assert 105 < box.left < 115
    assert box.top < 100 < box.bottom


def test_chart_is_well_formed_and_escapes_names() -> None:
    points = [Series(name, i, np.array([0.5]), np.array([0.5])) for i, name in enumerate(("<b>&", "same place"))]
    root = ElementTree.fromstring(scatter_svg(points, Axis("x", (0.0, 1.0)), Axis("y", (0.0, 1.0)), 'a "chart"'))
    assert root.get("aria-label") == 'a "chart"'
    assert "<b>&" in ["".join(text.itertext()) for text in root.iter("text")]
