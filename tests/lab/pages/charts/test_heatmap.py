import numpy as np
from tests.lab.pages.charts.drawn import parsed, texts

from polytta.lab.pages.charts import heatmap_svg
from polytta.lab.pages.charts.colours import colour_at
from polytta.lab.pages.charts.frame import SMALL_WIDTH


def test_colours_go_from_the_lowest_to_the_highest() -> None:
    root = parsed(heatmap_svg(np.arange(9.0).reshape(3, 3), ["1", "2", "<"], 'a "chart"'))
    assert root.get("aria-label") == 'a "chart"'
    fills = [cell.get("fill") for cell in root.iter("rect")]
    assert (fills[0], fills[4], fills[-1]) == (colour_at(0.0), colour_at(0.5), colour_at(1.0))
    assert texts(root).count("<") == 2
    assert {"0", "4", "8"} <= set(texts(root))


def test_equal_values_have_colours_too() -> None:
    root = parsed(heatmap_svg(np.ones((2, 2)), ["1", "2"], "flat"))
    assert {cell.get("fill") for cell in root.iter("rect")} == {colour_at(0.5)}
    assert float((root.get("viewBox") or "").split()[2]) == SMALL_WIDTH


def test_many_values_leave_their_numbers_out() -> None:
    names = [str(number) for number in range(12)]
    assert sorted(texts(parsed(heatmap_svg(np.eye(12), names, "large")))) == sorted(2 * names)


def test_numbers_stay_within_their_cells() -> None:
    values = np.array([[0.0, 1.2345e-5, 123456.7], [1.2345e-5, 0.0, 0.00123], [123456.7, 0.00123, 0.0]]).repeat(2, 0)
    values = values.repeat(2, 1)
    names = list("abcdef")
    root = parsed(heatmap_svg(values, names, "small and large"))
    size = float(next(root.iter("rect")).get("width", ""))
    numbers = [text for text in texts(root) if text not in names]
    assert numbers
    assert all(7 * len(number) <= size for number in numbers)
    assert len(list(root.iter("title"))) == 36
