from itertools import combinations, pairwise

import numpy as np
import pytest

from polytta.lab.pages.charts.labels import Box, place_names, spread_apart


def test_names_keep_their_order_and_distance() -> None:
    wanted = [50.0, 50.0, 10.0, 99.0, 51.0]
    placed = spread_apart(wanted, 14.0, 0.0, 100.0)
    ordered = sorted(placed)
    assert all(b - a >= 14.0 - 1e-9 for a, b in pairwise(ordered))
    assert ordered[0] >= 0.0
    assert ordered[-1] <= 100.0
    assert placed[2] == min(placed)
    assert placed[3] == max(placed)


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
    assert all(within.contains(box) for box in boxes)


def test_a_lonely_point_has_its_name_to_the_right() -> None:
    (box,) = place_names([(100.0, 100.0)], ["deyo"], Box(0.0, 0.0, 560.0, 300.0))
    assert 105 < box.left < 115
    assert box.top < 100 < box.bottom


def test_at_the_right_edge_the_name_goes_to_the_left() -> None:
    (box,) = place_names([(550.0, 100.0)], ["deyo"], Box(0.0, 0.0, 560.0, 300.0))
    assert box.right < 550


def test_boxes_that_only_touch_do_not_overlap() -> None:
    box = Box(0.0, 0.0, 10.0, 10.0)
    assert not box.overlaps(Box(10.0, 0.0, 20.0, 10.0))
    assert box.overlaps(Box(9.0, 9.0, 20.0, 20.0))
    assert box.contains(Box(0.0, 0.0, 10.0, 5.0))
    assert not box.contains(Box(0.0, 0.0, 10.0, 11.0))
