"""The measured figures as Markdown."""

from polytta.perf.run import BUNDLED, GOALS, LABELS, VIT, Figure, Results

COMMAND = "polytta perf --out docs"


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
        "## Growth",
        "In the number of particles, at batch 1 with Grad (one particle has nothing to interact with):",
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
    """The figure of a variant on the fast engine, or the only one there is."""
    found = [
        f
        for f in results.figures
        if (f.model, f.batch, f.variant, f.particles, f.populations) == (model, batch, variant, particles, populations)
    ]
    return next((f for f in found if f.how.startswith("graph")), found[0])


def _goals(results: Results) -> str:
    rows = ["| | batch | reference | K = 3, Grad | over reference | goal | roofline |", "|---|---|---|---|---|---|---|"]
    for (model, batch), goal in GOALS.items():
        reference, grad = (
            find(results, model, batch, "reference", 1),
            find(results, model, batch, "grad", 3),
        )
        ratios = sorted(g / r for g, r in zip(grad.milliseconds, reference.milliseconds, strict=True))
        met = "met" if ratios[len(ratios) // 2] <= goal else "**missed**"
        rows.append(
            f"| {LABELS[model]} | {batch} | {reference.middle:.2f} ms | {grad.middle:.2f} ms | "
            f"{ratios[len(ratios) // 2]:.2f}x ({ratios[0]:.2f}-{ratios[-1]:.2f}) | {goal:.2f}x {met} | "
            f"{_roofline(results, grad):.0%} |"
        )
    return "\n".join(rows)


def _variants(results: Results, model: str, batch: int) -> str:
    reference = find(results, model, batch, "reference", 1).middle
    names = {"none": "naive", "kl": "KL", "svgd": "SVGD", "grad": "Grad"}
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
        }.get(figure.variant, "DeYO" if figure.particles == 1 else names.get(figure.variant, figure.variant))
        rows.append(
            f"| {label} | {figure.particles} | {figure.middle:.2f} | {figure.middle / reference:.2f}x | "
            f"{figure.memory:.0f} | {_roofline(results, figure):.0%} |"
        )
    return "\n".join(rows)


def _particles(results: Results) -> str:
    rows = ["| K | 1 | 2 | 3 | 5 | 8 | 8 over 1 |", "|---|---|---|---|---|---|---|"]
    for model in (VIT, BUNDLED):
        times = particle_times(results, model)
        cells = " | ".join(f"{time:.2f} ms" for time in times)
        rows.append(f"| {LABELS[model]} | {cells} | {times[-1] / times[0]:.2f}x |")
    return "\n".join(rows)


def particle_times(results: Results, model: str) -> list[float]:
    """Milliseconds of 1, 2, 3, 5 and 8 particles at batch 1."""
    return [find(results, model, 1, "grad" if k > 1 else "none", k).middle for k in (1, 2, 3, 5, 8)]


def batch_times(results: Results) -> list[float]:
    """Milliseconds at batches 1, 4, 16 and 64."""
    return [find(results, VIT, batch, "grad", 3).middle for batch in (1, 4, 16, 64)]


def _batches(results: Results) -> str:
    times = batch_times(results)
    per_image = " | ".join(f"{time / batch:.2f} ms" for time, batch in zip(times, (1, 4, 16, 64), strict=True))
    steps = " | ".join(f"{time:.2f} ms" for time in times)
    return f"| batch | 1 | 4 | 16 | 64 |\n|---|---|---|---|---|\n| a step | {steps} |\n| an image | {per_image} |"


def _streams(results: Results) -> str:
    rows = ["| | ms per step | images per second | step over one population |", "|---|---|---|---|"]
    eager = next(f for f in results.figures if f.model == BUNDLED and f.how.startswith("loop") and f.variant == "grad")
    single = find(results, BUNDLED, 1, "grad", 3)
    rows.append(f"| eager loop, fp32 | {eager.middle:.2f} | {1000 / eager.middle:.0f} | |")
    rows.append(f"| graph, bf16 | {single.middle:.2f} | {1000 / single.middle:.0f} | 1.00x |")
    for count in (5, 15, 45):
        figure = find(results, BUNDLED, 1, "grad", 3, count)
        rows.append(
            f"| graph, bf16, {count} populations | {figure.middle:.2f} | {1000 * count / figure.middle:.0f} | "
            f"{figure.middle / single.middle:.2f}x |"
        )
    return "\n".join(rows)


def _roofline(results: Results, figure: Figure) -> float:
    return figure.flops / (figure.middle / 1000) / results.matmul
