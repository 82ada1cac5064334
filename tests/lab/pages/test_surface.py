import xml.etree.ElementTree as ElementTree

import numpy as np

from polytta.lab.pages.charts import Series, ramp
from polytta.lab.pages.surface import surface_svg


def test_surface_draws_a_cell_per_point_and_a_key() -> None:
    heights = np.arange(12.0).reshape(4, 3)
    mark = Series("<here>", 0, np.array([1.0]), np.array([2.0]))
    root = ElementTree.fromstring(surface_svg(heights, np.arange(3.0), np.arange(4.0), [mark], "%", 'a "chart"'))
    cells = list(root.iter("rect"))
    key = 40
    assert len(cells) == 12 + key
    assert (cells[0].get("fill"), cells[11].get("fill")) == (ramp(0.0), ramp(1.0))
    # Rows go up the page.
    assert float(cells[0].get("y") or 0) > float(cells[11].get("y") or 0)
    assert root.get("aria-label") == 'a "chart"'
    assert "<here>" in ["".join(text.itertext()) for text in root.iter("text")]
