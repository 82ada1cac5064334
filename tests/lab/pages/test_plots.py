import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest

from polytta.lab.pages.plots import Bar, Curve, bars_svg, curves_svg, round_ticks, spread_apart


@pytest.mark.parametrize(("low", "high"), [(52.3, 61.8), (0.0, 0.0), (-3.2, 0.4), (99.0, 99.01), (0.0, 2000.0)])
def test_ticks_are_even_and_cover_the_range(low: float, high: float) -> None:
    ticks = round_ticks(low, high)
    steps = np.diff(ticks)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert 2 <= len(ticks) <= 9
    assert steps == pytest.approx(np.full(len(steps), steps[0]))


def test_names_keep_their_order_and_distance() -> None:
    wanted = [50.0, 50.0, 10.0, 99.0, 51.0]
    placed = spread_apart(wanted, 14.0, 0.0, 100.0)
    ordered = sorted(placed)
    assert all(b - a >= 14.0 - 1e-9 for a, b in pairwise(ordered))
    assert ordered[0] >= 0.0
    assert ordered[-1] <= 100.0
    assert placed[2] == min(placed)
    assert placed[3] == max(placed)


def test_plots_are_well_formed_and_escape_names() -> None:
    names = ("Source", "<b>&")
    curves = [Curve(name, np.linspace(40.0, 60.0 + k, 30)) for k, name in enumerate(names)]
    root = ElementTree.fromstring(curves_svg(curves, 5, "images & more", 'a "plot"'))
    assert [len(line.get("points", "").split()) for line in root.iter("polyline")] == [30, 30]
    assert root.get("aria-label") == 'a "plot"'
    bars = [Bar("<b>&", 1, -2.0, 1.0), Bar("flat", 2, 0.0)]
    root = ElementTree.fromstring(bars_svg(bars, "points", "bars", signed=True))
    widths = [float(bar.get("width", "")) for bar in root.iter("rect")]
    assert widths[0] > 0
    assert widths[1] == 0
    assert "-2.0" in [text.text for text in root.iter("text")]


def test_one_image_makes_a_plot() -> None:
    ElementTree.fromstring(curves_svg([Curve("only", np.array([100.0]))], 1, "images", "one"))
