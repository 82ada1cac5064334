"""A long, changing stream: memory, time per step and accuracy must hold.

    python scripts/soak.py [--images 1000000] [--batch-size 16] [--method tent] [--guard default] [--window 10000]

A small network is trained on blobs for some seconds; then the images drift for ever between shifts (contrast,
brightness, noise, and classes that come in turn). Printed for every window: accuracy of the adapter and of the source
on the same images, resident memory, processor time per step. The exit code is 1 if, after the first window, memory
grows by more than 16 MiB, or a window is more than a point below the source.
"""

import argparse
import math
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn

import polytta

CLASSES = 5
MOST_GROWTH = 16.0


class Blobs:
    """Images of a class: a blob of its own colour and place, in noise."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.prototypes = 0.3 * torch.randn(CLASSES, 3, 8, 8, generator=self.generator)

    def drawn(self, labels: Tensor) -> Tensor:
        noise = torch.randn(len(labels), 3, 8, 8, generator=self.generator)
        return self.prototypes[labels] + 1.5 * noise

    def shifted(self, x: Tensor, phase: float) -> Tensor:
        contrast, brightness = 1 + 0.5 * math.sin(phase), 0.5 * math.sin(1.7 * phase)
        noise = torch.randn(x.shape, generator=self.generator) * (0.5 + 0.5 * math.sin(0.6 * phase))
        return contrast * x + brightness + noise


def trained(blobs: Blobs) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 64, CLASSES),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(150):
        labels = torch.randint(CLASSES, (64,), generator=blobs.generator)
        loss = nn.functional.cross_entropy(model(blobs.drawn(labels)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def resident() -> float:
    """MiB of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1_000_000)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--method", default="tent")
    parser.add_argument("--guard", default="default")
    parser.add_argument("--lr", type=float)
    parser.add_argument("--window", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    blobs = Blobs(options.seed)
    model = trained(blobs)
    adapted = polytta.adapt(model, options.method, particles=3, lr=options.lr, exclude=None, guard=options.guard)
    steps, per_window = options.images // options.batch_size, max(1, options.window // options.batch_size)
    first, failed, began = None, False, time.process_time()
    own = source = 0
    print(f"{'images':>9} {'adapted':>8} {'source':>8} {'MiB':>8} {'ms/step':>8}  guard")
    for step in range(1, steps + 1):
        if (step // 200) % 4 == 3:  # classes in turn
            labels = torch.full((options.batch_size,), (step // 20) % CLASSES)
        else:
            labels = torch.randint(CLASSES, (options.batch_size,), generator=blobs.generator)
        x = blobs.shifted(blobs.drawn(labels), step / 500)
        own += int((adapted(x).argmax(dim=1) == labels).sum())
        with torch.no_grad():
            source += int((model(x).argmax(dim=1) == labels).sum())
        if step % per_window == 0:
            seen, took = per_window * options.batch_size, 1e3 * (time.process_time() - began) / per_window
            memory = resident()
            first = memory if first is None else first
            scores = 100 * own / seen, 100 * source / seen
            print(
                f"{step * options.batch_size:9d} {scores[0]:8.2f} {scores[1]:8.2f} {memory:8.1f} {took:8.2f}  "
                f"{ {name: sum(counts) for name, counts in adapted.totals.actions.items()} }",
                flush=True,
            )
            failed |= memory > first + MOST_GROWTH or scores[0] < scores[1] - 1
            own, source, began = 0, 0, time.process_time()
    print("FAILED" if failed else "held")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
