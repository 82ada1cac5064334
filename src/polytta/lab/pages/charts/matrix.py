"""A matrix as colours, rows and columns under names of their own."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from polytta.lab.pages.charts.colours import colour_at, share_of
from polytta.lab.pages.charts.frame import WIDTH, svg_element

_LEFT, _ROW_HEIGHT, _SLOPE = 120.0, 18.0, -50
_SMALLEST_WITH_NUMBER = 26
_BRIGHT = 0.6


def matrix_svg(
    values: NDArray[np.float64], rows: Sequence[str], columns: Sequence[str], description: str, form: str = ".2f"
) -> str:
    """A cell per value; colours run from 0 to the largest."""
    longest = max(map(len, columns))
    # Names of columns lean to the right, and the last one's end must still be on the picture.
    width = (WIDTH - _LEFT - 3.9 * longest) / len(columns)
    top = 12 + 4.6 * longest
    high = max(float(values.max()), 1e-9)
    parts = []
    for row, column in np.ndindex(*values.shape):
        value = float(values[row, column])
        share = share_of(value, 0.0, high)
        x, y = _LEFT + column * width, top + row * _ROW_HEIGHT
        box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_ROW_HEIGHT:.1f}"'
        told = f"{rows[row]}, {columns[column]}: {value:{form}}"
        parts.append(f'<rect class="cell" {box} fill="{colour_at(share)}"><title>{escape(told)}</title></rect>')
        if width >= _SMALLEST_WITH_NUMBER and value >= 0.005:
            kind = "inside pale" if share > _BRIGHT else "inside"
            centre = f'x="{x + width / 2:.1f}" y="{y + _ROW_HEIGHT / 2 + 4:.1f}"'
            parts.append(f'<text class="{kind}" {centre} text-anchor="middle">{f"{value:{form}}".lstrip("0")}</text>')
    for number, name in enumerate(rows):
        y = top + (number + 0.5) * _ROW_HEIGHT + 4
        parts.append(f'<text x="{_LEFT - 7}" y="{y:.1f}" text-anchor="end">{escape(name)}</text>')
    for number, name in enumerate(columns):
        x, y = _LEFT + (number + 0.5) * width, top - 6
        turned = f'transform="rotate({_SLOPE} {x:.1f} {y:.1f})"'
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" {turned}>{escape(name)}</text>')
    return svg_element(parts, WIDTH, top + _ROW_HEIGHT * len(rows) + 6, description)
