"""Named points over two number axes."""

from collections.abc import Sequence
from html import escape

from polytta.lab.pages.charts.frame import Axis, Frame, Series
from polytta.lab.pages.charts.labels import POINT_RADIUS, Box, place_names

# A name farther from its point than this is tied to it by a thin line.
_NEAR = 14


def scatter_svg(points: Sequence[Series], x: Axis, y: Axis, description: str) -> str:
    """A dot per series with its name beside it."""
    frame = Frame(x, y, right=40.0)
    places = [frame.places(point)[0] for point in points]
    names = place_names(places, [point.name for point in points], Box(frame.left, 0.0, frame.width, frame.height - 30))
    parts = []
    for point, (px, py), name in zip(points, places, names, strict=True):
        kind = f"s{point.number}"
        if name.top > py + _NEAR or name.bottom < py - _NEAR:
            edge = name.top if name.top > py else name.bottom
            parts.append(f'<path class="lead {kind}" d="M{px:.1f} {py:.1f}L{name.middle:.1f} {edge:.1f}"/>')
        parts.append(f'<circle class="dot {kind}" cx="{px:.1f}" cy="{py:.1f}" r="{POINT_RADIUS}"/>')
        text = f'<text class="name {kind}" x="{name.middle:.1f}" y="{name.baseline:.1f}" text-anchor="middle">'
        parts.append(f"{text}{escape(point.name)}</text>")
    return frame.svg(parts, description)
