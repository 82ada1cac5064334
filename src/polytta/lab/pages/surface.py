"""A surface seen from above, with named points on it."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from polytta.lab.pages.charts import Axis, Frame, Series, ramp
from polytta.lab.pages.scatter import Box, place_names


def surface_svg(
    values: NDArray[np.float64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    marks: Sequence[Series],
    unit: str,
    description: str,
) -> str:
    """A surface seen from above, dark low and bright high, with named points on it and a key of its colours.

    Args:
        values: (len(y), len(x)) heights.
        x: evenly spaced places.
        y: evenly spaced places.
        marks: single points.
        unit: what the heights are.
        description: for those who cannot see it.
    """
    half_x, half_y = (x[1] - x[0]) / 2, (y[1] - y[0]) / 2
    along = Axis.over("along the first edge", (x[0] - half_x, x[-1] + half_x))
    frame = Frame(along, Axis.over("across", (y[0] - half_y, y[-1] + half_y)), height=400.0, right=76.0)
    low, high = float(values.min()), float(values.max())
    parts = []
    for row, column in np.ndindex(*values.shape):
        left, right = frame.x_of(float(x[column] - half_x)), frame.x_of(float(x[column] + half_x))
        bottom, top = frame.y_of(float(y[row] - half_y)), frame.y_of(float(y[row] + half_y))
        share = (float(values[row, column]) - low) / (high - low) if high > low else 0.5
        # A little larger than the cell: neighbours drawn exactly edge to edge show hairlines between them.
        size = f'width="{right - left + 0.4:.1f}" height="{bottom - top + 0.4:.1f}"'
        parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" {size} fill="{ramp(share)}"/>')
    places = [(frame.x_of(float(mark.x[0])), frame.y_of(float(mark.y[0]))) for mark in marks]
    names = place_names(places, [mark.name for mark in marks], Box(frame.left, 0.0, frame.width, frame.height - 30))
    for mark, (px, py), name in zip(marks, places, names, strict=True):
        parts.append(f'<circle class="pin" cx="{px:.1f}" cy="{py:.1f}" r="5.5"/>')
        middle, base = (name.left + name.right) / 2, name.bottom - 3
        text = f'<text class="pinned" x="{middle:.1f}" y="{base:.1f}" text-anchor="middle">'
        parts.append(f"{text}{escape(mark.name)}</text>")
    parts += _colour_key(frame, low, high, unit)
    return frame.svg(parts, description)


def _colour_key(frame: Frame, low: float, high: float, unit: str) -> list[str]:
    x, top, bottom = frame.width - frame.right + 14, frame.top + 18, frame.height - frame.bottom
    step = (bottom - top) / 40
    parts = [
        f'<rect x="{x}" y="{bottom - (i + 1) * step:.1f}" width="14" height="{step + 0.4:.1f}" fill="{ramp(i / 39)}"/>'
        for i in range(40)
    ]
    parts.append(f'<text x="{x}" y="{frame.top + 6}">{escape(unit)}</text>')
    parts.append(f'<text x="{x + 19}" y="{top + 9}">{high:.3g}</text>')
    parts.append(f'<text x="{x + 19}" y="{bottom}">{low:.3g}</text>')
    return parts
