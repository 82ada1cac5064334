import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from tests.lab.pages.browser import needs_chromium, screenshot

from polytta.lab.pages.charts import (
    SMALL_WIDTH,
    Axis,
    Series,
    calibration_svg,
    lines_svg,
    matrix_svg,
    paths_svg,
    ramp,
)


def series(name: str, number: int, points: int) -> Series:
    rng = np.random.default_rng(number)
    return Series(name, number, np.sort(rng.random(points)), rng.random(points))


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def test_every_chart_is_well_formed_and_escapes_names() -> None:
    lines = [series("<b>&", 1, 5), series("other", 2, 5)]
    x, y = Axis("x & y", (0.0, 0.5, 1.0)), Axis("<y>", (0.0, 1.0), " %")
    values = np.arange(9.0).reshape(3, 3)
    for made in (
        lines_svg(lines, x, y, 'a "chart"'),
        calibration_svg(lines, x, y, 'a "chart"', ideal=True),
        paths_svg(lines, 'a "chart"'),
        matrix_svg(values, ["1", "2", "<"], 'a "chart"'),
    ):
        assert parsed(made).get("aria-label") == 'a "chart"'


def test_a_very_long_name_leaves_room_for_the_plot() -> None:
    svg = lines_svg([series("x" * 80, 1, 5)], Axis("x", (0.0, 1.0)), Axis("y", (0.0, 1.0)), "lines")
    drawn = parsed(svg).find(".//{*}polyline[@class='curve s1']")
    if drawn is None:
        drawn = parsed(svg).find(".//polyline[@class='curve s1']")
    assert drawn is not None
    across = [float(point.split(",")[0]) for point in drawn.get("points", "").split()]
    assert across == sorted(across)
    assert across[-1] - across[0] > 0


@needs_chromium
def test_long_names_at_the_ends_of_lines_fit(tmp_path: Path) -> None:
    lines = [series("a_name_that_is_rather_long_WW", 1, 5), series("short", 2, 5)]
    drawing = lines_svg(lines, Axis("x", (0.0, 1.0)), Axis("y", (0.0, 1.0)), "lines")
    style = "margin:0; font: 600 13px sans-serif; background: white"
    pixels = screenshot(f'<body style="{style}"><div style="width:560px">{drawing}</div></body>', tmp_path, 600)
    assert (pixels[:300, 100:540] != 255).any()
    assert (pixels[:, 556:] == 255).all()


def test_axis_covers_its_values_and_log_axes_are_even_in_ratios() -> None:
    axis = Axis.over("t", [3.2, 17.9])
    assert axis.ticks[0] <= 3.2
    assert axis.ticks[-1] >= 17.9
    ratios = Axis.logarithmic("t", [0.03, 3.0])
    assert ratios.share(0.3) - ratios.share(0.03) == pytest.approx(ratios.share(3.0) - ratios.share(0.3))
    assert 0 <= ratios.share(0.03) <= ratios.share(3.0) <= 1
    assert len(Axis.logarithmic("t", [7.0]).ticks) >= 2


def test_a_matrix_of_equal_values_has_colours_too() -> None:
    root = parsed(matrix_svg(np.ones((2, 2)), ["1", "2"], "flat"))
    assert {cell.get("fill") for cell in root.iter("rect")} == {ramp(0.5)}
    assert float((root.get("viewBox") or "").split()[2]) == SMALL_WIDTH


def test_ramp_grows_brighter() -> None:
    shades = [int(ramp(share)[3:5], 16) for share in np.linspace(0, 1, 20)]
    assert shades == sorted(shades)
    assert ramp(-1) == ramp(0)
    assert ramp(2) == ramp(1)
