import pytest
from tests.lab.pages.charts.drawn import UNIT, parsed, points, random_series

from polytta.lab.pages.charts import dotted_line_svg


@pytest.mark.parametrize("diagonal", [True, False])
def test_a_dot_on_every_point(diagonal: bool) -> None:
    root = parsed(dotted_line_svg(random_series("line", 4), UNIT, UNIT, 'a "chart"', diagonal=diagonal))
    assert root.get("aria-label") == 'a "chart"'
    (curve,) = root.iter("polyline")
    dots = [(float(dot.get("cx", "")), float(dot.get("cy", ""))) for dot in root.iter("circle")]
    assert dots == points(curve)
    assert len([line for line in root.iter("line") if line.get("class") == "ideal"]) == diagonal
