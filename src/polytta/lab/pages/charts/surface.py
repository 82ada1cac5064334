"""A surface seen from above, with named points on it."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from polytta.lab.pages.charts.colours import colour_at, share_of
from polytta.lab.pages.charts.frame import Axis, Frame, Series
from polytta.lab.pages.charts.labels import POINT_RADIUS, Box, place_names

_KEY_STEPS = 40
# Rectangles drawn exactly edge to edge show hairlines between them.
_OVERLAP = 0.4


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
        colour = colour_at(share_of(float(values[row, column]), low, high))
        size = f'width="{right - left + _OVERLAP:.1f}" height="{bottom - top + _OVERLAP:.1f}"'
        parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" {size} fill="{colour}"/>')
    places = [frame.places(mark)[0] for mark in marks]
    names = place_names(places, [mark.name for mark in marks], Box(frame.left, 0.0, frame.width, frame.height - 30))
    for mark, (px, py), name in zip(marks, places, names, strict=True):
        parts.append(f'<circle class="pin" cx="{px:.1f}" cy="{py:.1f}" r="{POINT_RADIUS}"/>')
        text = f'<text class="pinned" x="{name.middle:.1f}" y="{name.baseline:.1f}" text-anchor="middle">'
        parts.append(f"{text}{escape(mark.name)}</text>")
    parts += _colour_key(frame, low, high, unit)
    return frame.svg(parts, description)


def _colour_key(frame: Frame, low: float, high: float, unit: str) -> list[str]:
    x, top, bottom = frame.width - frame.right + 14, frame.top + 18, frame.height - frame.bottom
    height = (bottom - top) / _KEY_STEPS
    parts = []
    for step in range(_KEY_STEPS):
        box = f'x="{x}" y="{bottom - (step + 1) * height:.1f}" width="14" height="{height + _OVERLAP:.1f}"'
        parts.append(f'<rect {box} fill="{colour_at(step / (_KEY_STEPS - 1))}"/>')
    parts.append(f'<text x="{x}" y="{frame.top + 6}">{escape(unit)}</text>')
    # As many digits as it takes to tell the ends apart.
    digits = next((d for d in range(3, 7) if f"{high:.{d}g}" != f"{low:.{d}g}"), 3)
    parts.append(f'<text x="{x + 19}" y="{top + 9}">{high:.{digits}g}</text>')
    parts.append(f'<text x="{x + 19}" y="{bottom}">{low:.{digits}g}</text>')
    return parts
