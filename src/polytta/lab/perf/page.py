"""The measured figures as Markdown."""

from polytta.errors import InputError
from polytta.lab.perf.run import (
    AT_ONCE,
    BATCHES,
    BUNDLED,
    COUNTS,
    GOALS,
    GROWTH_GOAL,
    LABELS,
    POPULATIONS,
    POPULATIONS_GOAL,
    VIT,
    Figure,
    Results,
)

COMMAND = "polytta perf --out docs"
NAMES = {"none": "naive", "kl": "KL", "svgd": "SVGD", "grad": "Grad"}


def page(results: Results) -> str:
    """docs/performance.md."""
    parts = [
        "# What particles cost on a GPU",
        f"Measured by `{COMMAND}` on one {results.device}, torch {results.torch}, random weights, every sample "
        "selected, all in one process. Times are medians over rounds of steps, in milliseconds; a range is over three "
        "repeats. "
        "*Reference* is one model adapted by DeYO as the public code does it: eager, float32, indexing "
        '(`engine="loop"`). Everything else is `engine="graph"`, `precision="bf16"`. "Roofline" is the arithmetic of a '
        f"step over its time, as a share of the {results.matmul / 1e12:.0f} TFLOP/s that a large bfloat16 matrix "
        "product reached in the same run. Memory is what a step needs beyond the weights, in MiB, the recording of its "
        "graph included.",
        "## Three particles with Grad, against one model today",
        _goals(results),
        "## All variants",
        *[_variants(results, model, batch) for model, batch in GOALS],
        "\n".join(f"- {fact}" for fact in (*_missed(results), *_memory(results))),
        "## Growth",
        "In the number of particles, at batch 1. One particle has nothing to interact with; from two on, Grad takes "
        "one forward and one backward pass more.",
        _particles(results),
        "In the batch, ViT-B/16, three particles with Grad:",
        _batches(results),
        "![growth in particles and in the batch](performance-growth.svg)",
        "## Streams of single images",
        "Bundled ResNet-GN, three particles with Grad, one image at a time; with populations, that many independent "
        "streams in one batch (`polytta.adapt(..., populations=G)`).",
        _streams(results),
    ]
    return "\n\n".join(parts) + "\n"


def find(results: Results, model: str, batch: int, variant: str, particles: int, populations: int = 1) -> Figure:
    """The figure of a variant on the fast engine with all particles at once, or the only one there is."""
    found = [
        f
        for f in results.figures
        if (f.model, f.batch, f.variant, f.particles, f.populations) == (model, batch, variant, particles, populations)
        and not _in_slices(f)
    ]
    if not found:
        raise InputError(
            f"--show: it has no {variant} with {particles} particles on {LABELS[model]} at batch {batch}; "
            "allowed is a performance.json of this version of polytta perf."
        )
    return next((f for f in found if f.how.startswith("graph")), found[0])


def _in_slices(figure: Figure) -> bool:
    return figure.how.endswith("at once")


def _goals(results: Results) -> str:
    rows = ["| | batch | reference | K = 3, Grad | over reference | goal | roofline |", "|---|---|---|---|---|---|---|"]
    for (model, batch), goal in GOALS.items():
        reference, grad = find(results, model, batch, "reference", 1), find(results, model, batch, "grad", 3)
        low, middle, high = _over_reference(results, model, batch)
        rows.append(
            f"| {LABELS[model]} | {batch} | {reference.middle:.2f} ms | {grad.middle:.2f} ms | "
            f"{middle:.2f}x ({low:.2f}-{high:.2f}) | {goal:.2f}x {'met' if middle <= goal else '**missed**'} | "
            f"{_roofline(results, grad):.0%} |"
        )
    return "\n".join(rows)


def _over_reference(results: Results, model: str, batch: int) -> tuple[float, float, float]:
    """Smallest, median and largest time of three particles with Grad over the reference, repeat by repeat."""
    reference, grad = find(results, model, batch, "reference", 1), find(results, model, batch, "grad", 3)
    ratios = sorted(g / r for g, r in zip(grad.milliseconds, reference.milliseconds, strict=True))
    return ratios[0], ratios[len(ratios) // 2], ratios[-1]


def _missed(results: Results) -> list[str]:
    """A sentence for every goal that was not reached."""
    missed = []
    for (model, batch), goal in GOALS.items():
        ratio = _over_reference(results, model, batch)[1]
        if ratio > goal:
            missed.append(
                f"Goal missed: {LABELS[model]} at batch {batch} takes {ratio:.2f} times the reference instead of "
                f"{goal:.2f}."
            )
    return missed or ["No goal is missed."]


def _memory(results: Results) -> list[str]:
    """A sentence for every model at the largest batch: many particles against one second derivative."""
    largest = max(batch for _, batch in GOALS)
    sentences = []
    for model in (model for model, batch in GOALS if batch == largest):
        many = find(results, model, largest, "grad", COUNTS[-1]).memory
        twice = find(results, model, largest, "second derivative", 1).memory
        sentence = (
            f"Memory: {LABELS[model]} at batch {largest} needs {many:.0f} MiB for {COUNTS[-1]} particles with Grad, "
            f"{'more' if many > twice else 'no more'} than the {twice:.0f} MiB of one model's second derivative"
        )
        for few in (f for f in results.figures if (f.model, f.batch) == (model, largest) and _in_slices(f)):
            sentence += f"; {few.memory:.0f} MiB with `particles_at_once={AT_ONCE}`"
        sentences.append(f"{sentence}.")
    return sentences


def _variants(results: Results, model: str, batch: int) -> str:
    reference = find(results, model, batch, "reference", 1).middle
    rows = [
        f"**{LABELS[model]}, batch {batch}**",
        "",
        "| | K | ms | over reference | memory | roofline |",
        "|---|---|---|---|---|---|",
    ]
    table = [f for f in results.figures if (f.model, f.batch) == (model, batch) and f.populations == 1]
    seen: set[tuple[str, int, str]] = set()
    for figure in table:
        key = (figure.variant, figure.particles, figure.how)
        growth_only = figure.particles in (2, 5) or (figure.how.startswith("loop") and figure.variant == "grad")
        if key in seen or growth_only:
            continue
        seen.add(key)
        label = {
            "forward": "forward only, eager fp32",
            "reference": "reference DeYO, eager fp32",
            "second derivative": "one second derivative, eager fp32",
        }.get(figure.variant, "DeYO" if figure.particles == 1 else NAMES.get(figure.variant, figure.variant))
        if _in_slices(figure):
            label += f", {AT_ONCE} at once"
        rows.append(
            f"| {label} | {figure.particles} | {figure.middle:.2f} | {figure.middle / reference:.2f}x | "
            f"{figure.memory:.0f} | {_roofline(results, figure):.0%} |"
        )
    return "\n".join(rows)


def _particles(results: Results) -> str:
    head = " | ".join(str(count) for count in COUNTS)
    rows = [f"| K | {head} | {COUNTS[-1]} over 1 |", "|---" * (len(COUNTS) + 2) + "|"]
    verdicts = []
    for model in (VIT, BUNDLED):
        for variant in ("none", "grad"):
            times = particle_times(results, model, variant)
            cells = " | ".join(f"{times[count]:.2f} ms" for count in COUNTS)
            growth = times[COUNTS[-1]] / times[1]
            rows.append(f"| {LABELS[model]}, {NAMES[variant]} | {cells} | {growth:.2f}x |")
            verdicts += [f"{_verdict(growth, GROWTH_GOAL)} for {NAMES[variant]}"] if model == VIT else []
    goal = f"The goal for {LABELS[VIT]}, {GROWTH_GOAL:.2f}x, is {' and '.join(verdicts)}."
    return "\n".join([*rows, "", goal])


def particle_times(results: Results, model: str, variant: str) -> dict[int, float]:
    """Milliseconds at batch 1 by the number of particles; one particle is the same in every variant."""
    return {k: find(results, model, 1, variant if k > 1 else "none", k).middle for k in COUNTS}


def batch_times(results: Results) -> list[float]:
    """Milliseconds at each of ``BATCHES``."""
    return [find(results, VIT, batch, "grad", 3).middle for batch in BATCHES]


def _batches(results: Results) -> str:
    times = batch_times(results)
    per_image = " | ".join(f"{time / batch:.2f} ms" for time, batch in zip(times, BATCHES, strict=True))
    steps = " | ".join(f"{time:.2f} ms" for time in times)
    head = " | ".join(str(batch) for batch in BATCHES)
    line = "|---" * (len(BATCHES) + 1)
    return f"| batch | {head} |\n{line}|\n| a step | {steps} |\n| an image | {per_image} |"


def _streams(results: Results) -> str:
    rows = ["| | ms per step | images per second | step over one population |", "|---|---|---|---|"]
    eager = next(f for f in results.figures if f.model == BUNDLED and f.how.startswith("loop") and f.variant == "grad")
    single = find(results, BUNDLED, 1, "grad", 3)
    rows.append(f"| eager loop, fp32 | {eager.middle:.2f} | {1000 / eager.middle:.0f} | |")
    rows.append(f"| graph, bf16 | {single.middle:.2f} | {1000 / single.middle:.0f} | 1.00x |")
    for count in POPULATIONS:
        figure = find(results, BUNDLED, 1, "grad", 3, count)
        rows.append(
            f"| graph, bf16, {count} populations | {figure.middle:.2f} | {1000 * count / figure.middle:.0f} | "
            f"{figure.middle / single.middle:.2f}x |"
        )
    count, goal = POPULATIONS_GOAL
    verdict = _verdict(find(results, BUNDLED, 1, "grad", 3, count).middle / single.middle, goal)
    return "\n".join([*rows, "", f"The goal for {count} populations, {goal:.2f}x, is {verdict}."])


def _verdict(ratio: float, goal: float) -> str:
    return "met" if ratio <= goal else "missed"


def _roofline(results: Results, figure: Figure) -> float:
    return figure.flops / (figure.middle / 1000) / results.matmul
