"""Where names go so that they cover neither points nor each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

POINT_RADIUS = 5.5
_LETTER_WIDTH, _LETTER_HEIGHT = 7.0, 13.0


@dataclass(frozen=True)
class Box:
    """A rectangle on paper."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> float:
        """Between left and right."""
        return (self.left + self.right) / 2

    @property
    def baseline(self) -> float:
        """Where letters stand."""
        return self.bottom - 3

    def overlaps(self, other: "Box") -> bool:
        """Whether the two share anything."""
        apart = self.right <= other.left or other.right <= self.left
        return not (apart or self.bottom <= other.top or other.bottom <= self.top)

    def contains(self, other: "Box") -> bool:
        """Whether the other lies within this one."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom


def spread_apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places near the wanted ones, at least ``gap`` apart, in the same order; within low..high where they fit."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = list(wanted)
    floor = low
    for i in order:
        placed[i] = floor = max(wanted[i], floor)
        floor += gap
    ceiling = high
    for i in reversed(order):
        placed[i] = ceiling = min(placed[i], ceiling)
        ceiling -= gap
    return placed


def place_names(points: Sequence[tuple[float, float]], names: Sequence[str], within: Box) -> list[Box]:
    """A box for each name: the first of some places around its point that is free."""
    taken = [Box(x - POINT_RADIUS, y - POINT_RADIUS, x + POINT_RADIUS, y + POINT_RADIUS) for x, y in points]
    boxes = []
    for (x, y), name in zip(points, names, strict=True):
        box = _first_free(_around(x, y, _LETTER_WIDTH * len(name)), taken, within)
        taken.append(box)
        boxes.append(box)
    return boxes


def _first_free(candidates: Iterator[Box], taken: Sequence[Box], within: Box) -> Box:
    for box in candidates:
        if within.contains(box) and not any(box.overlaps(other) for other in taken):
            return box
    return box  # crowded beyond help: the last, farthest one


def _around(x: float, y: float, width: float) -> Iterator[Box]:
    """Right, left, above, below; then farther and farther above and below."""
    for left, top in ((x + 9, y - 6.5), (x - 9 - width, y - 6.5), (x - width / 2, y - 22), (x - width / 2, y + 9)):
        yield Box(left, top, left + width, top + _LETTER_HEIGHT)
    for step in range(1, 16):
        for top in (y + 9 + step * _LETTER_HEIGHT, y - 22 - step * _LETTER_HEIGHT):
            for shift in (0.0, -0.5, 0.5, -1.0, 1.0):
                left = x - width / 2 + shift * width
                yield Box(left, top, left + width, top + _LETTER_HEIGHT)
