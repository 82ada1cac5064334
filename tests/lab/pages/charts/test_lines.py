from pathlib import Path

import numpy as np
from tests.lab.pages.browser import needs_chromium, screenshot
from tests.lab.pages.charts.drawn import UNIT, parsed, points, random_series, texts

from polytta.lab.pages.charts import Axis, Series, lines_svg


def test_names_and_last_values_stand_at_the_ends() -> None:
    root = parsed(lines_svg([random_series("<b>&", 1), random_series("other", 2)], UNIT, UNIT, 'a "chart"'))
    assert root.get("aria-label") == 'a "chart"'
    last = [random_series("", number).y[-1] for number in (1, 2)]
    assert {f"<b>& {last[0]:.1f}", f"other {last[1]:.1f}"} <= set(texts(root))


def test_the_reference_is_drawn_over_the_others() -> None:
    """A line that never left the reference would hide it."""
    lines = [random_series(name, number) for number, name in enumerate(("source", "tent", "deyo"))]
    root = parsed(lines_svg(lines, UNIT, UNIT, "lines"))
    assert [curve.get("class") for curve in root.iter("polyline")] == ["curve s1", "curve s2", "curve s0"]


def test_a_very_long_name_leaves_room_for_the_plot() -> None:
    (curve,) = parsed(lines_svg([random_series("x" * 80, 1)], UNIT, UNIT, "lines")).iter("polyline")
    across = [x for x, _ in points(curve)]
    assert across == sorted(across)
    assert across[-1] - across[0] > 100


def test_one_point_makes_a_chart() -> None:
    only = Series("only", 1, np.array([1.0]), np.array([100.0]))
    root = parsed(lines_svg([only], Axis.over("images", (0.0, 1.0)), Axis.over("y", (100.0, 100.0), " %"), "one"))
    assert "only 100.0" in texts(root)


@needs_chromium
def test_long_names_at_the_ends_of_lines_fit(tmp_path: Path) -> None:
    lines = [random_series("a_name_that_is_rather_long_WW", 1), random_series("short", 2)]
    drawing = lines_svg(lines, UNIT, UNIT, "lines")
    style = "margin:0; font: 600 13px sans-serif; background: white"
    pixels = screenshot(f'<body style="{style}"><div style="width:560px">{drawing}</div></body>', tmp_path, 600)
    assert (pixels[:300, 100:540] != 255).any()
    assert (pixels[:, 556:] == 255).all()
