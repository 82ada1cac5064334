"""Milliseconds per image of the recommended populations, for the frontier of accuracy and cost in docs/findings.md.

    python scripts/measure_frontier.py OUT.csv [--device cuda] [--repeats 5] [--quick]

One stream, as a user runs it: `polytta.adapt(model, size=...)`, batches of 1 and 64, the middle of several timings of
the same number of steps, all rows in one process. "off" is the model itself, "deyo" one adapting model, "naive" three
of them.
"""

import argparse
import csv
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import polytta
from polytta.models import create

ROWS: dict[str, dict[str, Any] | None] = {
    "off": None,
    "deyo": {"method": "deyo", "particles": 1},
    "naive": {"method": "deyo", "particles": 3},
    "small": {"size": "small"},
    "three_lenses": {"preset": "recommended", "lenses": ("unchanged", "farther", "much_sharper")},
    "default": {},
    "large": {"size": "large"},
}
MODELS = ("cifar10_resnet_gn", "cifar10_vit_ln", "cifar10_resnet_bn")


def seconds(step: Callable[[Tensor], Tensor], x: Tensor, steps: int) -> float:
    """Of one step, among so many in a row."""
    if x.is_cuda:
        torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(steps):
        step(x)
    if x.is_cuda:
        torch.cuda.synchronize()
    return (time.perf_counter() - started) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    on_gpu = options.device.startswith("cuda")
    precision = {"precision": "bf16"} if on_gpu else {}
    with options.out.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["model", "device", "batch", "row", "particles", "milliseconds_per_image"])
        for name in MODELS[:1] if options.quick else MODELS:
            for batch in (1, 64):
                generator = torch.Generator().manual_seed(0)
                x = torch.randn(batch, 3, 32, 32, generator=generator).to(options.device)
                for row, arguments in ROWS.items():
                    model = create(f"bundled/{name}").module.to(options.device).eval()
                    adapted = None if arguments is None else polytta.adapt(model, **precision, **arguments)
                    step = torch.no_grad()(model) if adapted is None else adapted
                    many = (20 if on_gpu else 3) if batch == 1 else (10 if on_gpu else 1)
                    seconds(step, x, many)
                    middle = statistics.median(seconds(step, x, many) for _ in range(options.repeats))
                    particles = 1 if adapted is None else len(adapted.hypotheses)
                    table.writerow([name, options.device, batch, row, particles, f"{1000 * middle / batch:.5f}"])
                    stream.flush()
                    print(f"{name} batch {batch} {row}: {1000 * middle / batch:.4f} ms per image", flush=True)


if __name__ == "__main__":
    main()
