import numpy as np
import pytest
from tests.lab.pages.charts.drawn import parsed, points, texts

from polytta.lab.pages.charts.frame import Axis, Frame, Series, round_ticks


@pytest.mark.parametrize(("low", "high"), [(52.3, 61.8), (0.0, 0.0), (-3.2, 0.4), (99.0, 99.01), (0.0, 2000.0)])
def test_ticks_are_even_and_cover_the_range(low: float, high: float) -> None:
    ticks = round_ticks(low, high)
    steps = np.diff(ticks)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert 2 <= len(ticks) <= 9
    assert steps == pytest.approx(np.full(len(steps), steps[0]))


def test_axis_covers_its_values_and_log_axes_are_even_in_ratios() -> None:
    axis = Axis.over("t", [3.2, 17.9])
    assert axis.ticks[0] <= 3.2
    assert axis.ticks[-1] >= 17.9
    ratios = Axis.logarithmic("t", [0.03, 3.0])
    assert ratios.share(0.3) - ratios.share(0.03) == pytest.approx(ratios.share(3.0) - ratios.share(0.3))
    assert 0 <= ratios.share(0.03) <= ratios.share(3.0) <= 1
    assert len(Axis.logarithmic("t", [7.0]).ticks) >= 2


def test_values_lie_between_the_ticks_they_are_between() -> None:
    frame = Frame(Axis("x", (0.0, 10.0)), Axis("y", (0.0, 1.0), " %"))
    assert frame.x_of(0.0) == frame.left
    assert frame.x_of(5.0) == pytest.approx((frame.x_of(0.0) + frame.x_of(10.0)) / 2)
    assert frame.y_of(1.0) == frame.top < frame.y_of(0.0)  # up is more


def test_a_frame_draws_ticks_titles_and_curves() -> None:
    frame = Frame(Axis("<x>", (0.0, 10.0)), Axis("y & z", (0.0, 1.0), " %"))
    line = Series("line", 3, np.array([0.0, 10.0]), np.array([0.0, 1.0]))
    root = parsed(frame.svg([frame.curve(line)], 'a "chart"'))
    assert root.get("aria-label") == 'a "chart"'
    assert set(texts(root)) == {"0", "10", "0 %", "1 %", "<x>", "y & z"}
    (curve,) = root.iter("polyline")
    assert curve.get("class") == "curve s3"
    assert points(curve) == [(round(x, 1), round(y, 1)) for x, y in frame.places(line)]


@pytest.mark.parametrize(("value", "unit"), [(15.0, " %"), (0.0, " %"), (100.0, " %"), (0.0, ""), (-3.2e-5, "")])
def test_equal_values_have_an_axis_with_different_ticks(value: float, unit: str) -> None:
    axis = Axis.over("all the same", [value, value], unit)
    written = [f"{tick:g}" for tick in axis.ticks]
    assert len(set(written)) == len(written) > 1
    assert axis.ticks[0] <= value <= axis.ticks[-1]
    assert unit != " %" or (axis.ticks[0] >= 0 and axis.ticks[-1] <= 100)
