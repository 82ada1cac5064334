"""Shares of many named things over time: a stripe for each, bright where its share is large."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from polytta.lab.pages.charts.colours import colour_at, share_of
from polytta.lab.pages.charts.frame import WIDTH, round_ticks, svg_element

_ROW_HEIGHT, _TOP, _BOTTOM, _RIGHT, _LETTER = 16.0, 18.0, 40.0, 44.0, 6.4
# Rectangles drawn exactly edge to edge show hairlines between them.
_OVERLAP = 0.4


def timeline_svg(
    values: NDArray[np.float64], ends: Sequence[float], rows: Sequence[str], title: str, description: str
) -> str:
    """A stripe per row, with its last value behind it; colours run from 0 to the largest value.

    Args:
        values: (len(ends), len(rows)) shares.
        ends: where each stretch of time ends; the first begins at 0.
        rows: names.
        title: of the axis of time.
        description: for those who cannot see it.
    """
    left = min(12 + _LETTER * max(map(len, rows)), 0.5 * WIDTH)
    scale = (WIDTH - left - _RIGHT) / ends[-1]
    high = max(float(values.max()), 1e-9)
    parts = [f'<text x="{WIDTH - 2}" y="{_TOP - 6}" text-anchor="end">at the end</text>']
    for row, name in enumerate(rows):
        y = _TOP + row * _ROW_HEIGHT
        start = 0.0
        for end, value in zip(ends, values[:, row], strict=True):
            box = f'x="{left + start * scale:.1f}" y="{y:.1f}" width="{(end - start) * scale + _OVERLAP:.1f}"'
            told = f"{name}, {start:g} to {end:g}: {value:.3f}"
            fill = colour_at(share_of(float(value), 0.0, high))
            parts.append(f'<rect {box} height="{_ROW_HEIGHT - 1}" fill="{fill}"><title>{escape(told)}</title></rect>')
            start = end
        middle = f"{y + _ROW_HEIGHT / 2 + 3.5:.1f}"
        parts.append(f'<text x="{left - 7:.1f}" y="{middle}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<text x="{WIDTH - _RIGHT + 6}" y="{middle}">{values[-1, row]:.2f}</text>')
    bottom = _TOP + len(rows) * _ROW_HEIGHT
    for tick in round_ticks(0.0, float(ends[-1]), 4):
        if tick <= ends[-1]:
            x = f"{left + tick * scale:.1f}"
            parts.append(f'<text x="{x}" y="{bottom + 14:.1f}" text-anchor="middle">{tick:g}</text>')
    centre = f"{left + ends[-1] * scale / 2:.1f}"
    parts.append(f'<text x="{centre}" y="{bottom + 32:.1f}" text-anchor="middle">{escape(title)}</text>')
    return svg_element(parts, WIDTH, bottom + _BOTTOM, description)
