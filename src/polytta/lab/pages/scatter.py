"""Named points over two number axes, the names placed where they cover neither points nor each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from polytta.lab.pages.charts import Axis, Frame, Series

_LETTER, _HEIGHT, _RADIUS = 7.0, 13.0, 5.5


@dataclass(frozen=True)
class Box:
    """A rectangle on paper."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        """Whether the two share anything."""
        apart = self.right <= other.left or other.right <= self.left
        return not (apart or self.bottom <= other.top or other.bottom <= self.top)


def scatter_svg(points: Sequence[Series], x: Axis, y: Axis, description: str) -> str:
    """A dot per series with its name beside it."""
    frame = Frame(x, y, right=40.0)
    places = [(frame.x_of(float(p.x[0])), frame.y_of(float(p.y[0]))) for p in points]
    names = place_names(places, [p.name for p in points], Box(frame.left, 0.0, frame.width, frame.height - 30))
    parts = []
    for point, (px, py), name in zip(points, places, names, strict=True):
        kind, middle, base = f"s{point.number}", (name.left + name.right) / 2, name.bottom - 3
        if name.top > py + 14 or name.bottom < py - 14:
            edge = name.top if name.top > py else name.bottom
            parts.append(f'<path class="lead {kind}" d="M{px:.1f} {py:.1f}L{middle:.1f} {edge:.1f}"/>')
        parts.append(f'<circle class="dot {kind}" cx="{px:.1f}" cy="{py:.1f}" r="{_RADIUS}"/>')
        text = f'<text class="name {kind}" x="{middle:.1f}" y="{base:.1f}" text-anchor="middle">'
        parts.append(f"{text}{escape(point.name)}</text>")
    return frame.svg(parts, description)


def place_names(places: Sequence[tuple[float, float]], names: Sequence[str], within: Box) -> list[Box]:
    """A box for each name: the first of some places around its point that is free."""
    taken = [Box(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in places]
    boxes = []
    for (x, y), name in zip(places, names, strict=True):
        box = next(_free(_around(x, y, _LETTER * len(name)), taken, within))
        taken.append(box)
        boxes.append(box)
    return boxes


def _free(candidates: Iterator[Box], taken: Sequence[Box], within: Box) -> Iterator[Box]:
    for box in candidates:
        inside = within.left <= box.left and box.right <= within.right
        inside = inside and within.top <= box.top and box.bottom <= within.bottom
        if inside and not any(box.overlaps(other) for other in taken):
            yield box
    yield box  # crowded beyond help: the last, farthest one


def _around(x: float, y: float, width: float) -> Iterator[Box]:
    """Right, left, above, below; then farther and farther above and below."""
    for left, top in ((x + 9, y - 6.5), (x - 9 - width, y - 6.5), (x - width / 2, y - 22), (x - width / 2, y + 9)):
        yield Box(left, top, left + width, top + _HEIGHT)
    for step in range(1, 16):
        for top in (y + 9 + step * _HEIGHT, y - 22 - step * _HEIGHT):
            for shift in (0.0, -0.5, 0.5, -1.0, 1.0):
                left = x - width / 2 + shift * width
                yield Box(left, top, left + width, top + _HEIGHT)
