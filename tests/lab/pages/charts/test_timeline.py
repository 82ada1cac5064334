import re

import numpy as np

from polytta.lab.pages.charts import timeline_svg


def test_a_stripe_per_row_as_long_as_its_stretches_of_time() -> None:
    svg = timeline_svg(np.array([[0.9, 0.1], [0.25, 0.75]]), (10, 40), ["as it is", "a<b"], "images seen", "what")
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', svg)]
    assert len(widths) == 4
    assert abs(widths[1] / widths[0] - 3) < 0.1
    assert "as it is, 10 to 40: 0.250" in svg
    assert ">a&lt;b</text>" in svg
    assert re.findall(r">(0\.\d\d)</text>", svg) == ["0.25", "0.75"]


def test_bright_is_much() -> None:
    fills = re.findall(r'fill="(#\w+)"', timeline_svg(np.array([[0.0, 1.0]]), (5,), ["none", "all"], "t", "what"))
    assert fills == ["#440154", "#fde725"]
