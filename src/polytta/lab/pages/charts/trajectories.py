"""Paths over a plane, from a common start to their ends."""

from collections.abc import Sequence
from html import escape

import numpy as np

from polytta.lab.pages.charts.frame import SMALL_HEIGHT, SMALL_WIDTH, Axis, Frame, Series


def trajectories_svg(paths: Sequence[Series], description: str) -> str:
    """Paths from a common start (ringed) to their ends (dots), both axes to the same scale."""
    every_x = np.concatenate([path.x for path in paths])
    every_y = np.concatenate([path.y for path in paths])
    reach = max(float(np.ptp(every_x)), float(np.ptp(every_y)), 1e-9) * 0.55
    middle = (float(every_x.min() + every_x.max()) / 2, float(every_y.min() + every_y.max()) / 2)
    axes = [Axis.over(f"axis {i + 1}", (centre - reach, centre + reach), about=4) for i, centre in enumerate(middle)]
    frame = Frame(axes[0], axes[1], SMALL_WIDTH, SMALL_HEIGHT)
    parts = []
    for path in paths:
        kind, (end_x, end_y) = f"s{path.number}", frame.places(path)[-1]
        parts.append(frame.curve(path))
        parts.append(f'<circle class="dot {kind}" cx="{end_x:.1f}" cy="{end_y:.1f}" r="5"/>')
        parts.append(f'<text class="name {kind}" x="{end_x + 8:.1f}" y="{end_y + 4:.1f}">{escape(path.name)}</text>')
    start_x, start_y = frame.places(paths[0])[0]
    parts.append(f'<circle class="mark" cx="{start_x:.1f}" cy="{start_y:.1f}" r="6"/>')
    return frame.svg(parts, description)
