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


def test_dots_are_as_large_as_what_they_stand_for() -> None:
    root = parsed(
        dotted_line_svg(random_series("line", 4), UNIT, UNIT, "chart", diagonal=True, counts=[1, 4, 16, 16, 9])
    )
    radii = [float(dot.get("r", "")) for dot in root.iter("circle")]
    assert radii[1] == pytest.approx(radii[2] / 2, abs=0.06)
    assert radii[2] == radii[3] == max(radii)
    assert [title.text for title in root.iter("title")] == [
        "1 images",
        "4 images",
        "16 images",
        "16 images",
        "9 images",
    ]
