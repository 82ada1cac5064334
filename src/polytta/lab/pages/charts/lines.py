"""Lines over two number axes, with their names at their ends."""

from collections.abc import Sequence
from html import escape

from polytta.lab.pages.charts.frame import WIDTH, Axis, Frame, Series
from polytta.lab.pages.charts.labels import spread_apart

# Of the widest of common fonts, DejaVu Sans, in bold.
_LETTER_WIDTH = 8.2
_MOST_FOR_NAMES = 0.55
_NAME_GAP = 14.0


def lines_svg(lines: Sequence[Series], x: Axis, y: Axis, description: str) -> str:
    """Lines with their names and last values at their ends; number 0 is the reference the others are seen against."""
    longest = max(len(_end_label(line)) for line in lines)
    frame = Frame(x, y, right=min(18 + _LETTER_WIDTH * longest, _MOST_FOR_NAMES * WIDTH))
    wanted = [frame.y_of(float(line.y[-1])) for line in lines]
    ends = spread_apart(wanted, _NAME_GAP, frame.top, frame.height - frame.bottom)
    parts = []
    # Drawn last, the reference stays visible under lines that never left it.
    for line, end in sorted(zip(lines, ends, strict=True), key=lambda pair: pair[0].number == 0):
        last_x, last_y = frame.places(line)[-1]
        parts.append(frame.curve(line))
        lead = f"M{last_x:.1f} {last_y:.1f}L{last_x + 10:.1f} {end:.1f}"
        parts.append(f'<path class="lead s{line.number}" d="{lead}"/>')
        name = f'<text class="name s{line.number}" x="{last_x + 14:.1f}" y="{end + 4:.1f}">'
        parts.append(f"{name}{escape(_end_label(line))}</text>")
    return frame.svg(parts, description)


def _end_label(line: Series) -> str:
    return f"{line.name} {line.y[-1]:.1f}"
