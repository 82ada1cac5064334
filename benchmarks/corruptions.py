"""Throughput of `polytta.data.corruptions.corrupt` against the package imagecorruptions-imaug, on one core.

    python benchmarks/corruptions.py

Both run the ImageNet constants at severities 1, 3 and 5 on photograph-like images of 224 and 32 pixels.
The field package takes one image a call; ours takes the batch. Each figure is the best of several alternating
rounds, in milliseconds of processor time per image, as the mean of the three severities.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402

import cv2  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from imagecorruptions import corrupt as field_corrupt  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from polytta.data.corruptions import CORRUPTIONS, corrupt  # noqa: E402

BATCHES = {224: 16, 32: 256}
SEVERITIES = (1, 3, 5)


def photograph_like(count: int, size: int) -> NDArray[np.uint8]:
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (count, size // 8, size // 8, 3), dtype=np.uint8)
    smooth = np.stack([cv2.resize(image, (size, size), interpolation=cv2.INTER_CUBIC) for image in coarse])
    return np.clip(smooth + rng.normal(0, 6, smooth.shape), 0, 255).astype(np.uint8)


def seconds(work: Callable[[], object]) -> float:
    # Processor time, not wall time: other processes on the machine then cost neither side.
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(name: str, images: NDArray[np.uint8], rounds: int) -> tuple[float, float]:
    """Milliseconds per image, ours and the field package's."""
    field_images = images[: max(4, len(images) // 4)]
    ids = np.arange(len(images))
    ours, field = 0.0, 0.0
    for severity in SEVERITIES:

        def run_ours(severity: int = severity) -> None:
            corrupt(images, name, severity, ids=ids)

        def run_field(severity: int = severity) -> None:
            for image in field_images:
                field_corrupt(image, severity, name)

        run_ours(), run_field()
        timings = [(seconds(run_ours), seconds(run_field)) for _ in range(rounds)]
        ours += min(timing[0] for timing in timings) / len(images)
        field += min(timing[1] for timing in timings) / len(field_images)
    return 1e3 * ours / len(SEVERITIES), 1e3 * field / len(SEVERITIES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    columns = " | ".join(f"{size} ours ms | {size} field ms | {size} ratio" for size in BATCHES)
    print(f"| corruption | {columns} |")
    print("|---" * (1 + 3 * len(BATCHES)) + "|")
    ratios: dict[int, list[float]] = {size: [] for size in BATCHES}
    totals = {size: [0.0, 0.0] for size in BATCHES}
    batches = {size: photograph_like(count, size) for size, count in BATCHES.items()}
    for name in CORRUPTIONS:
        cells = []
        for size, images in batches.items():
            ours, field = compare(name, images, rounds)
            ratios[size].append(field / ours)
            totals[size][0] += ours
            totals[size][1] += field
            cells.append(f"{ours:.3f} | {field:.3f} | {field / ours:.1f}x")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    for label, summary in (
        ("mean ratio", np.mean),
        ("geometric mean", lambda values: np.exp(np.mean(np.log(values)))),
        ("smallest", np.min),
    ):
        print(f"| {label} | " + " | ".join(f"| | {summary(ratios[size]):.1f}x" for size in BATCHES) + " |")
    sums = " | ".join(f"{ours:.2f} | {field:.2f} | {field / ours:.1f}x" for ours, field in totals.values())
    print(f"| sum over all | {sums} |")


if __name__ == "__main__":
    main()
