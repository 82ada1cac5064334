"""A small line with a dot at each of its points."""

from polytta.lab.pages.charts.frame import SMALL_HEIGHT, SMALL_WIDTH, Axis, Frame, Series


def dotted_line_svg(line: Series, x: Axis, y: Axis, description: str, *, diagonal: bool) -> str:
    """The line; ``diagonal`` also draws where both axes have the same value."""
    frame = Frame(x, y, SMALL_WIDTH, SMALL_HEIGHT)
    parts = []
    if diagonal:
        ends = (frame.x_of(x.ticks[0]), frame.y_of(x.ticks[0]), frame.x_of(x.ticks[-1]), frame.y_of(x.ticks[-1]))
        parts.append('<line class="ideal" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(*ends))
    parts.append(frame.curve(line))
    parts += [
        f'<circle class="dot s{line.number}" cx="{px:.1f}" cy="{py:.1f}" r="3.5"/>' for px, py in frame.places(line)
    ]
    return frame.svg(parts, description)
