"""Growth of a step's time with the particles and with the batch: the numbers, and their drawing."""

import numpy as np

from polytta.lab.pages.charts import Axis, Series, lines_svg
from polytta.lab.pages.charts.frame import HEIGHT, WIDTH
from polytta.lab.perf.goals import BATCHES, BUNDLED, LABELS, PARTICLES, VIT
from polytta.lab.perf.measurements import Measurements

DIVERSITY_NAMES = {"none": "naive", "kl": "KL", "svgd": "SVGD", "grad": "Grad"}
_EDGE = 12
# One colour per model; broken lines are particles that do not interact.
_STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #5c6575; } .grid { stroke: #dfe3ea; }
.curve, .lead { fill: none; stroke-width: 2; } .lead { stroke-width: 1; }
.s1, .s2 { stroke: #0072b2; } .s3, .s4 { stroke: #b06f00; } .curve.s2, .curve.s4 { stroke-dasharray: 5 4; }
text.name { stroke: none; } text.s1, text.s2 { fill: #0072b2; } text.s3, text.s4 { fill: #b06f00; }
</style><rect width="100%" height="100%" fill="#ffffff"/>"""


def particle_times(measurements: Measurements, model: str, diversity: str) -> dict[int, float]:
    """Milliseconds at batch 1 by the number of particles; one particle is the same with every diversity."""
    return {k: measurements.find(model, 1, diversity if k > 1 else "none", k).median for k in PARTICLES}


def batch_times(measurements: Measurements) -> list[float]:
    """Milliseconds at each of ``BATCHES``."""
    return [measurements.find(VIT, batch, "grad", 3).median for batch in BATCHES]


def growth_svg(measurements: Measurements) -> str:
    """Time over the number of particles, and over the batch, side by side; a drawing that stands alone."""
    by_particles = [
        _over_particles(measurements, model, diversity, number)
        for number, (model, diversity) in enumerate(
            ((VIT, "grad"), (VIT, "none"), (BUNDLED, "grad"), (BUNDLED, "none")), start=1
        )
    ]
    by_batch = Series(f"{LABELS[VIT]}, Grad", 1, np.array(BATCHES, float), np.array(batch_times(measurements)))
    left = lines_svg(
        by_particles,
        Axis("particles, batch 1", tuple(map(float, PARTICLES))),
        Axis.over("milliseconds per step", [0.0, *(float(y) for line in by_particles for y in line.y)]),
        "milliseconds per step over the number of particles",
    )
    right = lines_svg(
        [by_batch],
        Axis("batch, three particles", tuple(map(float, BATCHES)), log=True),
        Axis.logarithmic("milliseconds per step", [float(y) for y in by_batch.y]),
        "milliseconds per step over the batch size",
    )
    placed = [
        svg.replace("<svg ", f'<svg x="{x}" y="{_EDGE}" width="{WIDTH}" height="{HEIGHT}" ', 1)
        for svg, x in ((left, _EDGE), (right, WIDTH + 2 * _EDGE))
    ]
    size = f"0 0 {2 * WIDTH + 3 * _EDGE} {HEIGHT + 2 * _EDGE}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}">{_STYLE}{"".join(placed)}</svg>\n'


def _over_particles(measurements: Measurements, model: str, diversity: str, number: int) -> Series:
    times = particle_times(measurements, model, diversity)
    name = f"{LABELS[model]}, {DIVERSITY_NAMES[diversity]}"
    return Series(name, number, np.array(list(times), float), np.array(list(times.values())))
