"""Horizontal bars from zero."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from polytta.lab.pages.charts.frame import WIDTH, Axis, svg_element

_ROW_HEIGHT, _TOP, _BOTTOM = 30, 8, 40
_LEAST_NAME_WIDTH, _LETTER_WIDTH, _VALUE_WIDTH = 64, 9, 76


@dataclass(frozen=True)
class Bar:
    """One named value of a series, with its standard error where it has one."""

    name: str
    number: int
    value: float
    error: float = 0.0


def bars_svg(bars: Sequence[Bar], title: str, description: str, *, signed: bool) -> str:
    """Bars with their values beside them, thin lines one standard error each way; ``signed`` writes + before gains."""
    ends = [bar.value + side * bar.error for bar in bars for side in (-1, 1)]
    axis = Axis.over(title, (0.0, *ends))
    bottom = _TOP + _ROW_HEIGHT * len(bars)

    names = max(_LEAST_NAME_WIDTH, *(_LETTER_WIDTH * len(bar.name) for bar in bars))

    def x_of(value: float) -> float:
        return names + (WIDTH - names - _VALUE_WIDTH) * axis.share(value)

    parts = []
    for tick in axis.ticks:
        x, kind = x_of(tick), "axis" if tick == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{_formatted(tick, "g", signed)}</text>')
    centre = (x_of(axis.ticks[0]) + x_of(axis.ticks[-1])) / 2
    parts.append(f'<text x="{centre:.1f}" y="{bottom + 34}" text-anchor="middle">{escape(title)}</text>')
    for row, bar in enumerate(bars):
        y = _TOP + _ROW_HEIGHT * row + _ROW_HEIGHT / 2
        left, width = x_of(min(0.0, bar.value)), abs(x_of(bar.value) - x_of(0.0))
        parts.append(f'<rect class="bar s{bar.number}" x="{left:.1f}" y="{y - 9}" width="{width:.1f}" height="18"/>')
        if bar.error:
            start, end = x_of(bar.value - bar.error), x_of(bar.value + bar.error)
            parts.append(f'<line class="whisker" x1="{start:.1f}" x2="{end:.1f}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="name" x="0" y="{y + 4}">{escape(bar.name)}</text>')
        value = _formatted(bar.value, ".1f", signed)
        parts.append(f'<text class="name" x="{WIDTH}" y="{y + 4}" text-anchor="end">{value}</text>')
    return svg_element(parts, WIDTH, bottom + _BOTTOM, description)


def _formatted(value: float, form: str, signed: bool) -> str:
    return format(value, f"+{form}" if signed and value else form)
