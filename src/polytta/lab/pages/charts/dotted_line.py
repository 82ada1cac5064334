"""A small line with a dot at each of its points, as large as what it stands for."""

import math
from collections.abc import Sequence

from polytta.lab.pages.charts.frame import SMALL_HEIGHT, SMALL_WIDTH, Axis, Frame, Series

_RADIUS, _SMALLEST, _LARGEST = 3.5, 1.5, 9.0


def dotted_line_svg(
    line: Series, x: Axis, y: Axis, description: str, *, diagonal: bool, counts: Sequence[float] = ()
) -> str:
    """The line; ``diagonal`` also draws where both axes have the same value.

    ``counts`` says how much each point stands for: the area of its dot, and what pointing at it tells.
    """
    frame = Frame(x, y, SMALL_WIDTH, SMALL_HEIGHT)
    parts = []
    if diagonal:
        ends = (frame.x_of(x.ticks[0]), frame.y_of(x.ticks[0]), frame.x_of(x.ticks[-1]), frame.y_of(x.ticks[-1]))
        parts.append('<line class="ideal" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(*ends))
    parts.append(frame.curve(line))
    most = max(counts, default=0)
    for number, (px, py) in enumerate(frame.places(line)):
        radius, told = _RADIUS, ""
        if counts:
            radius = max(_SMALLEST, _LARGEST * math.sqrt(counts[number] / most))
            told = f"<title>{counts[number]:,.0f} images</title>"
        place = f'cx="{px:.1f}" cy="{py:.1f}" r="{radius:.1f}"'
        parts.append(f'<circle class="dot s{line.number}" {place}>{told}</circle>')
    return frame.svg(parts, description)
