"""SVG charts over two number axes: lines, points, paths and heat maps. Colours are the page's, as in ``plots``."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from polytta.lab.pages.plots import round_ticks, spread_apart, svg_element

WIDTH, HEIGHT = 560, 330
SMALL_WIDTH, SMALL_HEIGHT = 300, 250
_LETTER = 7.5
"""Width of a letter of a name at the end of a line, at most on average."""
_GAP = 14.0
# Eight stops of viridis (CC0): dark is low, bright is high, in print and for the colour-blind too.
_RAMP = (
    (68, 1, 84),
    (70, 50, 127),
    (54, 92, 141),
    (39, 127, 142),
    (31, 161, 135),
    (74, 194, 109),
    (159, 218, 58),
    (253, 231, 37),
)


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
        """An axis that covers the values."""
        return cls(title, round_ticks(min(values), max(values), about), unit)

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
    """A plot's rectangle, axes and grid."""

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

    def drawn(self) -> list[str]:
        """Grid, ticks and titles."""
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

    def points(self, series: Series) -> str:
        """Coordinates for a polyline."""
        return " ".join(
            f"{self.x_of(float(x)):.1f},{self.y_of(float(y)):.1f}" for x, y in zip(series.x, series.y, strict=True)
        )

    def svg(self, parts: Sequence[str], description: str) -> str:
        """The whole plot."""
        return svg_element([*self.drawn(), *parts], self.height, description, self.width)


def lines_svg(lines: Sequence[Series], x: Axis, y: Axis, description: str) -> str:
    """Lines with their names and last values at their ends."""
    longest = max(len(f"{line.name} {line.y[-1]:.1f}") for line in lines)
    frame = Frame(x, y, right=min(18 + _LETTER * longest, WIDTH / 2))
    wanted = [frame.y_of(float(line.y[-1])) for line in lines]
    ends = spread_apart(wanted, _GAP, frame.top, frame.height - frame.bottom)
    parts = []
    for line, end in zip(lines, ends, strict=True):
        kind, last_x, last_y = f"s{line.number}", frame.x_of(float(line.x[-1])), frame.y_of(float(line.y[-1]))
        parts.append(f'<polyline class="curve {kind}" points="{frame.points(line)}"/>')
        parts.append(f'<path class="lead {kind}" d="M{last_x:.1f} {last_y:.1f}L{last_x + 10:.1f} {end:.1f}"/>')
        label = f"{escape(line.name)} {line.y[-1]:.1f}"
        parts.append(f'<text class="name {kind}" x="{last_x + 14:.1f}" y="{end + 4:.1f}">{label}</text>')
    return frame.svg(parts, description)


def calibration_svg(lines: Sequence[Series], x: Axis, y: Axis, description: str, *, ideal: bool) -> str:
    """Small lines with dots; ``ideal`` draws the diagonal."""
    frame = Frame(x, y, SMALL_WIDTH, SMALL_HEIGHT)
    parts = []
    if ideal:
        ends = (frame.x_of(x.ticks[0]), frame.y_of(x.ticks[0]), frame.x_of(x.ticks[-1]), frame.y_of(x.ticks[-1]))
        parts.append('<line class="ideal" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(*ends))
    for line in lines:
        parts.append(f'<polyline class="curve s{line.number}" points="{frame.points(line)}"/>')
        for place in frame.points(line).split():
            cx, _, cy = place.partition(",")
            parts.append(f'<circle class="dot s{line.number}" cx="{cx}" cy="{cy}" r="3.5"/>')
    return frame.svg(parts, description)


def paths_svg(paths: Sequence[Series], description: str) -> str:
    """Trajectories from a common start (ringed) to their ends (dots), both axes to the same scale."""
    every_x = np.concatenate([path.x for path in paths])
    every_y = np.concatenate([path.y for path in paths])
    reach = max(float(np.ptp(every_x)), float(np.ptp(every_y)), 1e-9) * 0.55
    middle = (float(every_x.min() + every_x.max()) / 2, float(every_y.min() + every_y.max()) / 2)
    axes = [Axis.over(f"axis {i + 1}", (centre - reach, centre + reach), about=4) for i, centre in enumerate(middle)]
    frame = Frame(axes[0], axes[1], SMALL_WIDTH, SMALL_HEIGHT)
    parts = []
    for path in paths:
        kind = f"s{path.number}"
        parts.append(f'<polyline class="curve {kind}" points="{frame.points(path)}"/>')
        end = (frame.x_of(float(path.x[-1])), frame.y_of(float(path.y[-1])))
        parts.append(f'<circle class="dot {kind}" cx="{end[0]:.1f}" cy="{end[1]:.1f}" r="5"/>')
        parts.append(f'<text class="name {kind}" x="{end[0] + 8:.1f}" y="{end[1] + 4:.1f}">{escape(path.name)}</text>')
    start = (frame.x_of(float(paths[0].x[0])), frame.y_of(float(paths[0].y[0])))
    parts.append(f'<circle class="mark" cx="{start[0]:.1f}" cy="{start[1]:.1f}" r="6"/>')
    return frame.svg(parts, description)


def matrix_svg(values: NDArray[np.float64], names: Sequence[str], description: str, form: str = ".3g") -> str:
    """A small square matrix as colours with its numbers."""
    count = len(values)
    size, left, top = (SMALL_WIDTH - 44) / count, 40.0, 22.0
    low, high = float(values.min()), float(values.max())
    parts = []
    for row, column in np.ndindex(count, count):
        value = float(values[row, column])
        share = (value - low) / (high - low) if high > low else 0.5
        x, y = left + column * size, top + row * size
        text = "inside pale" if share > 0.6 else "inside"
        parts.append(
            f'<rect class="cell" x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="{size:.1f}" fill="{ramp(share)}"/>'
        )
        if size >= 34:
            label = f'<text class="{text}" x="{x + size / 2:.1f}" y="{y + size / 2 + 4:.1f}" text-anchor="middle">'
            parts.append(f"{label}{value:{form}}</text>")
    for number, name in enumerate(names):
        centre = number * size + size / 2
        parts.append(f'<text x="{left + centre:.1f}" y="{top - 7}" text-anchor="middle">{escape(name)}</text>')
        parts.append(f'<text x="{left - 7}" y="{top + centre + 4:.1f}" text-anchor="end">{escape(name)}</text>')
    return svg_element(parts, top + size * count + 6, description, SMALL_WIDTH)


def ramp(share: float) -> str:
    """The colour at 0..1 of the ramp."""
    place = min(max(share, 0.0), 1.0) * (len(_RAMP) - 1)
    lower = min(int(place), len(_RAMP) - 2)
    mixed = (round(a + (b - a) * (place - lower)) for a, b in zip(_RAMP[lower], _RAMP[lower + 1], strict=True))
    return "#{:02x}{:02x}{:02x}".format(*mixed)
