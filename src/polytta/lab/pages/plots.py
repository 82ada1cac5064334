"""Small SVG plots for a page: curves with names at their ends, and bars around zero.

Colours are the page's: series number i is drawn in the CSS class ``s<i>``, so one picture serves light and dark.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

_WIDTH, _HEIGHT = 560, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 104, 14, 40
_LABEL_GAP = 14.0


@dataclass(frozen=True, eq=False)
class Curve:
    """One named line."""

    name: str
    y: NDArray[np.float64]


@dataclass(frozen=True)
class Bar:
    """One named value of a series, with its standard error where it has one."""

    name: str
    series: int
    value: float
    error: float = 0.0


def curves_svg(curves: Sequence[Curve], first_x: int, x_title: str, description: str) -> str:
    """Lines over x = first_x, first_x + 1, ...; all of equal length; y in percent."""
    count = len(curves[0].y)
    values = np.concatenate([curve.y for curve in curves])
    ticks = round_ticks(float(values.min()), float(values.max()))
    plot_width, plot_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x_of(position: float) -> float:
        return _LEFT + plot_width * position / max(1, count - 1)

    def y_of(value: float) -> float:
        return _TOP + plot_height * (ticks[-1] - value) / (ticks[-1] - ticks[0])

    parts = []
    for tick in ticks:
        y = y_of(tick)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g} %</text>')
    for share in (0.0, 0.5, 1.0):
        position = round(share * (count - 1))
        x = x_of(position)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 22}" text-anchor="middle">{first_x + position}</text>')
    parts.append(f'<text x="{_LEFT + plot_width / 2}" y="{_HEIGHT - 5}" text-anchor="middle">{escape(x_title)}</text>')
    ends = spread_apart([y_of(float(curve.y[-1])) for curve in curves], _LABEL_GAP, _TOP, _HEIGHT - _BOTTOM)
    # The first series is the reference: drawn last, it stays visible under those that never left it.
    for number in (*range(1, len(curves)), 0):
        curve = curves[number]
        points = " ".join(f"{x_of(i):.1f},{y_of(float(y)):.1f}" for i, y in enumerate(curve.y))
        end_x, end_y = _WIDTH - _RIGHT, y_of(float(curve.y[-1]))
        parts.append(f'<polyline class="curve s{number}" points="{points}"/>')
        parts.append(f'<path class="lead s{number}" d="M{end_x} {end_y:.1f}L{end_x + 12} {ends[number]:.1f}"/>')
        parts.append(
            f'<text class="name s{number}" x="{end_x + 16}" y="{ends[number] + 4:.1f}">'
            f"{escape(curve.name)} {curve.y[-1]:.1f}</text>"
        )
    return svg_element(parts, _HEIGHT, description)


def bars_svg(bars: Sequence[Bar], unit: str, description: str, *, signed: bool) -> str:
    """Horizontal bars from zero, the thin lines one standard error each way; ``signed`` writes + before gains."""
    row_height, top = 30, 8
    height = top + row_height * len(bars) + 40
    name_width, right = 64, 76
    low = min(0.0, *(bar.value - bar.error for bar in bars))
    high = max(0.0, *(bar.value + bar.error for bar in bars))
    ticks = round_ticks(low, high)

    def x_of(value: float) -> float:
        return name_width + (_WIDTH - name_width - right) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    bottom = top + row_height * len(bars)
    parts = []
    for tick in ticks:
        x, kind = x_of(tick), "axis" if tick == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{_number(tick, "g", signed)}</text>')
    centre = (x_of(ticks[0]) + x_of(ticks[-1])) / 2
    parts.append(f'<text x="{centre:.1f}" y="{bottom + 34}" text-anchor="middle">{escape(unit)}</text>')
    for number, bar in enumerate(bars):
        value = _number(bar.value, ".1f", signed)
        y = top + row_height * number + row_height / 2
        left, width = x_of(min(0.0, bar.value)), abs(x_of(bar.value) - x_of(0.0))
        start, end = x_of(bar.value - bar.error), x_of(bar.value + bar.error)
        parts.append(f'<rect class="bar s{bar.series}" x="{left:.1f}" y="{y - 9}" width="{width:.1f}" height="18"/>')
        if bar.error:
            parts.append(f'<line class="whisker" x1="{start:.1f}" x2="{end:.1f}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="name" x="0" y="{y + 4}">{escape(bar.name)}</text>')
        parts.append(f'<text class="name" x="{_WIDTH}" y="{y + 4}" text-anchor="end">{value}</text>')
    return svg_element(parts, height, description)


def round_ticks(low: float, high: float, about: int = 5) -> tuple[float, ...]:
    """Round numbers, evenly spaced, from at most ``low`` to at least ``high``."""
    span = max(high - low, 1e-6)
    magnitude = 10.0 ** math.floor(math.log10(span / about))
    step = next(magnitude * factor for factor in (1, 2, 5, 10) if magnitude * factor >= span / about)
    first, last = math.floor(low / step), math.ceil(high / step)
    return tuple(round(step * tick, 10) for tick in range(first, max(last, first + 1) + 1))


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


def _number(value: float, form: str, signed: bool) -> str:
    return format(value, f"+{form}" if signed and value else form)


def svg_element(parts: Sequence[str], height: float, description: str, width: float = _WIDTH) -> str:
    """An SVG that takes the width it is given, within reason; the description is for those who cannot see it."""
    inner = "\n".join(parts)
    label = escape(description, quote=True)
    size = f'viewBox="0 0 {width} {height}" style="max-width: {1.3 * width:.0f}px"'
    return f'<svg {size} role="img" aria-label="{label}">\n{inner}\n</svg>'
