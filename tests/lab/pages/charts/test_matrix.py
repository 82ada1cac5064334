import re

import numpy as np

from polytta.lab.pages.charts import matrix_svg


def test_a_matrix_names_its_rows_and_columns_and_hides_what_is_nothing() -> None:
    svg = matrix_svg(np.array([[0.25, 0.75, 0.0], [0.5, 0.5, 0.001]]), ["fog", "a<b"], ["one", "two", "three"], "what")
    assert svg.count("<rect") == 6
    for name in ("fog", "a&lt;b", "one", "two", "three"):
        assert f">{name}</text>" in svg
    assert [float(number) for number in re.findall(r">(\.\d+)<", svg)] == [0.25, 0.75, 0.5, 0.5]
    assert "fog, two: 0.75" in svg
