"""The measurements as Markdown: docs/performance.md."""

from collections.abc import Sequence

from polytta.lab.pages.tables import Table, TableCell, TableRow, as_markdown
from polytta.lab.perf.goals import (
    BATCHES,
    BUNDLED,
    GOALS,
    GROWTH_GOAL,
    LABELS,
    PARTICLES,
    PARTICLES_AT_ONCE,
    PLAIN,
    POPULATIONS,
    POPULATIONS_GOAL,
    VIT,
)
from polytta.lab.perf.growth import DIVERSITY_NAMES, batch_times, particle_times
from polytta.lab.perf.measurements import Measurement, Measurements

COMMAND = "polytta perf --out docs"
_VARIANT_NAMES = {
    "forward": "forward only, eager fp32",
    "reference": "reference DeYO, eager fp32",
    "second derivative": "one second derivative, eager fp32",
}


_REFERENCES = {
    True: "the module's own parameters, `torch.optim.SGD`, none of our code: `polytta/lab/perf/plain.py`",
    False: '`engine="loop"`',
}


_PROCESSES = {
    False: "all in one process",
    True: f"the first table in one process by `{COMMAND} --goals`, the rest in an earlier one",
}


def _is_plain(measurements: Measurements) -> bool:
    return any(m.engine == PLAIN for m in measurements.measured)


def performance_markdown(measurements: Measurements) -> str:
    """The whole page."""
    parts = [
        "# What particles cost on a GPU",
        f"Measured by `{COMMAND}` on one {measurements.device}, torch {measurements.torch}, random weights, every "
        f"sample selected, {_PROCESSES[measurements.runs > 1]}. Times are medians over rounds of steps, in "
        "milliseconds; a range is over "
        f"three repeats. *Reference* is one model adapted by DeYO as the public code does it: eager, float32, indexing "
        f'({_REFERENCES[_is_plain(measurements)]}). Everything else is `engine="graph"`, and `precision="bf16"` where '
        'it does not say fp32, which is the default. "Roofline" is the arithmetic of a '
        f"step over its time, as a share of the {measurements.matmul / 1e12:.0f} TFLOP/s that a large bfloat16 matrix "
        "product reached in the same run. Memory is what a step needs beyond the weights, in MiB, the recording of its "
        "graph included.",
        "## Three particles with Grad, against one model today",
        _goals(measurements),
        "## All variants",
        *[_variants(measurements, model, batch) for model, batch in GOALS],
        "\n".join(f"- {fact}" for fact in (*_missed(measurements), *_memory(measurements))),
        "## Growth",
        "In the number of particles, at batch 1. One particle has nothing to interact with; from two on, Grad takes "
        "one forward and one backward pass more.",
        _growth_in_particles(measurements),
        f"In the batch, {LABELS[VIT]}, three particles with Grad:",
        _growth_in_batch(measurements),
        "![growth in particles and in the batch](performance-growth.svg)",
        "## Streams of single images",
        "Bundled ResNet-GN, three particles with Grad, one image at a time; with populations, that many independent "
        "streams in one batch (`polytta.adapt(..., populations=G)`).",
        _populations(measurements),
    ]
    return "\n\n".join(parts) + "\n"


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return as_markdown(Table(header, tuple(TableRow(name, tuple(map(TableCell, cells))) for name, *cells in rows)))


def _goals(measurements: Measurements) -> str:
    header = (
        *("", "batch", "reference", "K = 3, Grad, fp32", "over reference", "K = 3, Grad, bf16", "over reference"),
        *("goal", "roofline"),
    )
    rows = []
    for (model, batch), goal in GOALS.items():
        reference = measurements.find(model, batch, "reference", 1)
        grad = measurements.find(model, batch, "grad", 3)
        low, median, high = _over_reference(measurements, model, batch)
        default = measurements.find_default(model, batch)
        rows.append(
            (
                LABELS[model],
                str(batch),
                f"{reference.median:.2f} ms",
                "not measured" if default is None else f"{default.median:.2f} ms",
                "" if default is None else f"{default.median / reference.median:.2f}x",
                f"{grad.median:.2f} ms",
                f"{median:.2f}x ({low:.2f}-{high:.2f})",
                f"{goal:.2f}x {'met' if median <= goal else '**missed**'}",
                f"{measurements.roofline(grad):.0%}",
            )
        )
    return _table(header, rows)


def _over_reference(measurements: Measurements, model: str, batch: int) -> tuple[float, float, float]:
    """Smallest, median and largest time of three particles with Grad over the reference, repeat by repeat."""
    reference, grad = measurements.find(model, batch, "reference", 1), measurements.find(model, batch, "grad", 3)
    ratios = sorted(g / r for g, r in zip(grad.milliseconds, reference.milliseconds, strict=True))
    return ratios[0], ratios[len(ratios) // 2], ratios[-1]


def _missed(measurements: Measurements) -> list[str]:
    """A sentence for every goal that was not reached."""
    missed = []
    for (model, batch), goal in GOALS.items():
        ratio = _over_reference(measurements, model, batch)[1]
        if ratio > goal:
            missed.append(
                f"Goal missed: {LABELS[model]} at batch {batch} takes {ratio:.2f} times the reference instead of "
                f"{goal:.2f}."
            )
    return missed or ["No goal is missed."]


def _memory(measurements: Measurements) -> list[str]:
    """A sentence for every model at the largest batch: many particles against one second derivative."""
    largest = max(batch for _, batch in GOALS)
    sentences = []
    for model in (model for model, batch in GOALS if batch == largest):
        many = measurements.find(model, largest, "grad", PARTICLES[-1]).memory
        twice = measurements.find(model, largest, "second derivative", 1).memory
        sentence = (
            f"Memory: {LABELS[model]} at batch {largest} needs {many:.0f} MiB for {PARTICLES[-1]} particles with Grad, "
            f"{'more' if many > twice else 'no more'} than the {twice:.0f} MiB of one model's second derivative"
        )
        for few in measurements.measured:
            if (few.model, few.batch) == (model, largest) and few.particles_at_once is not None:
                sentence += f"; {few.memory:.0f} MiB with `particles_at_once={PARTICLES_AT_ONCE}`"
        sentences.append(f"{sentence}.")
    return sentences


def _variants(measurements: Measurements, model: str, batch: int) -> str:
    reference = measurements.find(model, batch, "reference", 1).median
    rows: dict[tuple[object, ...], tuple[str, ...]] = {}
    for m in measurements.measured:
        # Some measurements are for the tables of growth alone.
        for_growth = m.populations > 1 or m.particles in (2, 5) or (m.engine == "loop" and m.variant == "grad")
        if (m.model, m.batch) != (model, batch) or for_growth:
            continue
        cells = (
            _variant_name(m),
            str(m.particles),
            f"{m.median:.2f}",
            f"{m.median / reference:.2f}x",
            f"{m.memory:.0f}",
            f"{measurements.roofline(m):.0%}",
        )
        rows.setdefault((m.variant, m.particles, m.engine, m.precision, m.particles_at_once), cells)
    table = _table(("", "K", "ms", "over reference", "memory", "roofline"), list(rows.values()))
    return f"**{LABELS[model]}, batch {batch}**\n\n{table}"


def _variant_name(measurement: Measurement) -> str:
    name = DIVERSITY_NAMES.get(measurement.variant, measurement.variant) if measurement.particles > 1 else "DeYO"
    name = _VARIANT_NAMES.get(measurement.variant, name)
    if measurement.engine == "graph" and measurement.precision == "fp32":
        name = f"{name}, fp32"
    return name if measurement.particles_at_once is None else f"{name}, {measurement.particles_at_once} at once"


def _growth_in_particles(measurements: Measurements) -> str:
    header = ("K", *map(str, PARTICLES), f"{PARTICLES[-1]} over 1")
    rows, verdicts = [], []
    for model in (VIT, BUNDLED):
        for diversity in ("none", "grad"):
            times = particle_times(measurements, model, diversity)
            growth = times[PARTICLES[-1]] / times[1]
            label = f"{LABELS[model]}, {DIVERSITY_NAMES[diversity]}"
            rows.append((label, *(f"{times[count]:.2f} ms" for count in PARTICLES), f"{growth:.2f}x"))
            if model == VIT:
                verdicts.append(f"{_met(growth, GROWTH_GOAL)} for {DIVERSITY_NAMES[diversity]}")
    goal = f"The goal for {LABELS[VIT]}, {GROWTH_GOAL:.2f}x, is {' and '.join(verdicts)}."
    return f"{_table(header, rows)}\n\n{goal}"


def _growth_in_batch(measurements: Measurements) -> str:
    times = batch_times(measurements)
    steps = ("a step", *(f"{time:.2f} ms" for time in times))
    images = ("an image", *(f"{time / batch:.2f} ms" for time, batch in zip(times, BATCHES, strict=True)))
    return _table(("batch", *map(str, BATCHES)), [steps, images])


def _populations(measurements: Measurements) -> str:
    eager = next(m for m in measurements.measured if (m.model, m.engine, m.variant) == (BUNDLED, "loop", "grad")).median
    single = measurements.find(BUNDLED, 1, "grad", 3).median
    several = {count: measurements.find(BUNDLED, 1, "grad", 3, count).median for count in POPULATIONS}
    rows = [
        ("eager loop, fp32", f"{eager:.2f}", f"{1000 / eager:.0f}", ""),
        ("graph, bf16", f"{single:.2f}", f"{1000 / single:.0f}", "1.00x"),
    ]
    for count, time in several.items():
        label = f"graph, bf16, {count} populations"
        rows.append((label, f"{time:.2f}", f"{1000 * count / time:.0f}", f"{time / single:.2f}x"))
    count, goal = POPULATIONS_GOAL
    table = _table(("", "ms per step", "images per second", "step over one population"), rows)
    return f"{table}\n\nThe goal for {count} populations, {goal:.2f}x, is {_met(several[count] / single, goal)}."


def _met(ratio: float, goal: float) -> str:
    return "met" if ratio <= goal else "missed"
