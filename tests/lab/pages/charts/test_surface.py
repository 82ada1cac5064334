import numpy as np
from tests.lab.pages.charts.drawn import parsed, texts

from polytta.lab.pages.charts import Series, surface_svg
from polytta.lab.pages.charts.colours import colour_at


def test_surface_draws_a_cell_per_point_and_a_key() -> None:
    heights = np.arange(12.0).reshape(4, 3)
    mark = Series("<here>", 0, np.array([1.0]), np.array([2.0]))
    root = parsed(surface_svg(heights, np.arange(3.0), np.arange(4.0), [mark], "%", 'a "chart"'))
    cells = list(root.iter("rect"))
    key = 40
    assert len(cells) == 12 + key
    assert (cells[0].get("fill"), cells[11].get("fill")) == (colour_at(0.0), colour_at(1.0))
    # Rows go up the page.
    assert float(cells[0].get("y") or 0) > float(cells[11].get("y") or 0)
    assert root.get("aria-label") == 'a "chart"'
    assert {"<here>", "0", "11", "%"} <= set(texts(root))


def test_a_key_tells_its_ends_apart() -> None:
    heights = np.array([[0.94411, 0.9442], [0.9443, 0.94432]])
    shown = texts(parsed(surface_svg(heights, np.arange(2.0), np.arange(2.0), [], "nats", "what")))
    assert {"0.9441", "0.9443"} <= set(shown)
