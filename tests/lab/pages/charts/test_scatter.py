import numpy as np
from tests.lab.pages.charts.drawn import UNIT, parsed, texts

from polytta.lab.pages.charts import Series, scatter_svg


def test_every_point_has_its_name_also_where_two_coincide() -> None:
    points = [Series(name, i, np.array([0.5]), np.array([0.5])) for i, name in enumerate(("<b>&", "same place"))]
    root = parsed(scatter_svg(points, UNIT, UNIT, 'a "chart"'))
    assert root.get("aria-label") == 'a "chart"'
    assert {"<b>&", "same place"} <= set(texts(root))
    assert len(list(root.iter("circle"))) == 2
    names = [text for text in root.iter("text") if (text.get("class") or "").startswith("name")]
    assert len({(name.get("x"), name.get("y")) for name in names}) == 2
