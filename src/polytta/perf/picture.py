"""Growth of a step's time, drawn."""

import numpy as np

from polytta.perf.page import batch_times, particle_times
from polytta.perf.run import BUNDLED, LABELS, VIT, Results
from polytta.report.charts import Axis, Series, lines_svg

_STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #5c6575; } .grid { stroke: #dfe3ea; } .axis { stroke: #5c6575; }
.curve, .lead { fill: none; stroke-width: 2; } .lead { stroke-width: 1; }
.s1 { stroke: #0072b2; } .s4 { stroke: #c47f00; }
text.s1, text.s4 { stroke: none; } text.s1 { fill: #0072b2; } text.s4 { fill: #c47f00; }
</style><rect width="100%" height="100%" fill="#ffffff"/>"""


def growth_svg(results: Results) -> str:
    """Time over the number of particles, and over the batch, side by side; a drawing that stands alone."""
    counts, batches = np.array([1.0, 2, 3, 5, 8]), np.array([1.0, 4, 16, 64])
    by_particles = [
        Series(LABELS[model], number, counts, np.array(particle_times(results, model)))
        for model, number in ((VIT, 1), (BUNDLED, 4))
    ]
    by_batch = [Series(LABELS[VIT], 1, batches, np.array(batch_times(results)))]
    left = lines_svg(
        by_particles,
        Axis("particles, batch 1", (1.0, 2.0, 3.0, 5.0, 8.0)),
        Axis.over("milliseconds per step", [0.0, *(float(v) for line in by_particles for v in line.y)]),
        "milliseconds per step over the number of particles",
    )
    right = lines_svg(
        by_batch,
        Axis("batch, three particles", (1.0, 4.0, 16.0, 64.0), log=True),
        Axis.logarithmic("milliseconds per step", [float(v) for v in by_batch[0].y]),
        "milliseconds per step over the batch size",
    )
    placed = [
        svg.replace("<svg ", f'<svg x="{x}" y="0" width="560" height="330" ', 1) for svg, x in ((left, 0), (right, 570))
    ]
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1130 340">{_STYLE}{"".join(placed)}</svg>\n'
