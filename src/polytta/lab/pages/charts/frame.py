"""Axes with round ticks, and the rectangle between two of them that charts are drawn into."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 560, 330
SMALL_WIDTH, SMALL_HEIGHT = 300, 250
PERCENT = " %"


@dataclass(frozen=True, eq=False)
class Series:
    """Named points of one colour, in order."""

    name: str
    number: int
    x: NDArray[np.float64]
    y: NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """From a value to its place, with round ticks.

    Attributes:
        title: what the numbers are.
        ticks: values marked; the first and the last are the ends.
        unit: put after each tick.
        log: equal ratios are equal distances.
    """

    title: str
    ticks: tuple[float, ...]
    unit: str = ""
    log: bool = False

    @classmethod
    def over(cls, title: str, values: Sequence[float], unit: str = "", about: int = 5) -> "Axis":
        """An axis that covers the values with about so many steps; equal values are seen with some room around them."""
        low, high = min(values), max(values)
        if high - low <= 1e-6 * max(abs(low), abs(high)):
            room = 0.1 * abs(low) or 1.0
            low, high = low - room, high + room
            if unit == PERCENT:
                low, high = max(low, 0.0), min(high, 100.0)
        return cls(title, round_ticks(low, high, about), unit)

    @classmethod
    def logarithmic(cls, title: str, values: Sequence[float]) -> "Axis":
        """An axis of equal ratios, with ticks at 1, 2 and 5 times powers of ten."""
        marks = [m * 10.0**power for power in range(-6, 9) for m in (1, 2, 5)]
        low = max(m for m in marks if m <= min(values) * 1.001)
        high = min(m for m in marks if m >= max(values) * 0.999 and m > low)
        return cls(title, tuple(round(m, 9) for m in marks if low <= m <= high), log=True)

    def share(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        low, high = self.ticks[0], self.ticks[-1]
        if self.log:
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)


@dataclass(frozen=True)
class Frame:
    """A chart's rectangle, axes and grid."""

    x: Axis
    y: Axis
    width: float = WIDTH
    height: float = HEIGHT
    right: float = 16.0
    top: float = 12.0
    bottom: float = 44.0

    @property
    def left(self) -> float:
        """Room for the longest tick of the upright axis and its title."""
        return 26.0 + 7.2 * max(len(f"{tick:g}{self.y.unit}") for tick in self.y.ticks)

    def x_of(self, value: float) -> float:
        """Place on paper."""
        return self.left + (self.width - self.left - self.right) * self.x.share(value)

    def y_of(self, value: float) -> float:
        """Place on paper."""
        return self.top + (self.height - self.top - self.bottom) * (1 - self.y.share(value))

    def places(self, series: Series) -> list[tuple[float, float]]:
        """The points of a series on paper."""
        return [(self.x_of(float(x)), self.y_of(float(y))) for x, y in zip(series.x, series.y, strict=True)]

    def curve(self, series: Series) -> str:
        """A series as one line."""
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in self.places(series))
        return f'<polyline class="curve s{series.number}" points="{points}"/>'

    def svg(self, parts: Sequence[str], description: str) -> str:
        """The whole chart: grid, ticks and titles, and the parts over them."""
        return svg_element([*self._grid(), *parts], self.width, self.height, description)

    def _grid(self) -> list[str]:
        end_x, end_y = self.width - self.right, self.height - self.bottom
        parts = []
        for tick in self.y.ticks:
            y = self.y_of(tick)
            parts.append(f'<line class="grid" x1="{self.left}" x2="{end_x}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text x="{self.left - 7}" y="{y + 4:.1f}" text-anchor="end">{tick:g}{self.y.unit}</text>')
        for tick in self.x.ticks:
            x = self.x_of(tick)
            parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{self.top}" y2="{end_y}"/>')
            parts.append(f'<text x="{x:.1f}" y="{end_y + 17}" text-anchor="middle">{tick:g}{self.x.unit}</text>')
        middle_x, middle_y = (self.left + end_x) / 2, (self.top + end_y) / 2
        parts.append(f'<text x="{middle_x}" y="{self.height - 6}" text-anchor="middle">{escape(self.x.title)}</text>')
        parts.append(
            f'<text transform="translate(11 {middle_y}) rotate(-90)" text-anchor="middle">{escape(self.y.title)}</text>'
        )
        return parts


def round_ticks(low: float, high: float, about: int = 5) -> tuple[float, ...]:
    """Round numbers, evenly spaced, from at most ``low`` to at least ``high``."""
    span = max(high - low, 1e-6)
    magnitude = 10.0 ** math.floor(math.log10(span / about))
    step = next(magnitude * factor for factor in (1, 2, 5, 10) if magnitude * factor >= span / about)
    first, last = math.floor(low / step), math.ceil(high / step)
    return tuple(round(step * tick, 10) for tick in range(first, max(last, first + 1) + 1))


def svg_element(parts: Sequence[str], width: float, height: float, description: str) -> str:
    """An SVG that takes the width it is given, within reason; the description is for those who cannot see it."""
    inner = "\n".join(parts)
    label = escape(description, quote=True)
    size = f'viewBox="0 0 {width} {height}" style="max-width: {1.3 * width:.0f}px"'
    return f'<svg {size} role="img" aria-label="{label}">\n{inner}\n</svg>'
