"""A small square matrix as colours with its numbers."""

import re
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from polytta.lab.pages.charts.colours import colour_at, share_of
from polytta.lab.pages.charts.frame import SMALL_WIDTH, svg_element

_LEFT, _TOP = 40.0, 22.0
_SMALLEST_WITH_NUMBER = 34
# Of a number of 12 pixels.
_DIGIT_WIDTH = 7.0
# From here on a dark number reads better than a white one.
_BRIGHT = 0.6


def heatmap_svg(values: NDArray[np.float64], names: Sequence[str], description: str, form: str = ".3g") -> str:
    """A cell per value, rows and columns under the same names."""
    size = (SMALL_WIDTH - _LEFT - 4) / len(values)
    low, high = float(values.min()), float(values.max())
    parts = []
    for row, column in np.ndindex(*values.shape):
        value = float(values[row, column])
        share = share_of(value, low, high)
        x, y = _LEFT + column * size, _TOP + row * size
        box = f'x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="{size:.1f}"'
        told = f"{names[row]}, {names[column]}: {value:.6g}"
        parts.append(f'<rect class="cell" {box} fill="{colour_at(share)}"><title>{escape(told)}</title></rect>')
        text = _fitting(value, form, size) if size >= _SMALLEST_WITH_NUMBER else None
        if text is not None:
            kind = "inside pale" if share > _BRIGHT else "inside"
            label = f'<text class="{kind}" x="{x + size / 2:.1f}" y="{y + size / 2 + 4:.1f}" text-anchor="middle">'
            parts.append(f"{label}{text}</text>")
    for number, name in enumerate(names):
        centre = number * size + size / 2
        parts.append(f'<text x="{_LEFT + centre:.1f}" y="{_TOP - 7}" text-anchor="middle">{escape(name)}</text>')
        parts.append(f'<text x="{_LEFT - 7}" y="{_TOP + centre + 4:.1f}" text-anchor="end">{escape(name)}</text>')
    return svg_element(parts, SMALL_WIDTH, _TOP + size * len(values) + 6, description)


def _fitting(value: float, form: str, width: float) -> str | None:
    """The number with as many digits as there is room for between its neighbours; None where there is none."""
    for shorter in (form, ".3g", ".2g", ".1g", ".0e"):
        text = re.sub(r"e([+-])0*(\d)", lambda found: f"e{found[1].replace('+', '')}{found[2]}", f"{value:{shorter}}")
        if _DIGIT_WIDTH * len(text) <= width - 3:
            return text
    return None
