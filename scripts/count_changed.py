"""How many answers the images nearby change where classes come by chance; none should be.

    python scripts/count_changed.py DATA/cifar10_test.npz bundled/cifar10_resnet_gn --images 200 --batch 1
    python scripts/count_changed.py PHOTOGRAPHS.npz timm/deit_tiny_patch16_224=WEIGHTS --images 128 --batch 64 --mixed

One shuffled stream per corruption, or one of all of them, answered by the five lenses (``size="small"``).
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

import polytta
from polytta.aggregate import chain
from polytta.data.corruption_names import COMMON_CORRUPTIONS
from polytta.data.corruptions import corrupt
from polytta.models import create

SMALL_IMAGE = 64
"""Up to this many pixels a side, corruptions are as strong as those of CIFAR-10-C."""


def changed(source: polytta.models.SourceModel, images: np.ndarray, batch: int, precision: str) -> tuple[int, int]:
    """Answers that changed, and all."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    adapted = polytta.adapt(source.module.to(device), size="small", precision=precision)
    read, counts = chain.read, [0, 0]

    def counted(told: Tensor, state: chain.State) -> tuple[Tensor, dict[str, Tensor]]:
        answer, after = read(told, state)
        counts[0] += int((answer.argmax(dim=-1) != told.argmax(dim=-1)).sum())
        counts[1] += told.shape[1]
        return answer, after

    chain.read = counted
    try:
        for start in tqdm(range(0, len(images) - len(images) % batch, batch), leave=False):
            adapted(source.preprocessing(list(images[start : start + batch])).to(device))
    finally:
        chain.read = read
    return counts[0], counts[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("model")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--severity", type=int, default=5)
    parser.add_argument("--corruptions", nargs="+", default=list(COMMON_CORRUPTIONS))
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--mixed", action="store_true")
    options = parser.parse_args()
    identity, _, weights = options.model.partition("=")
    source = create(identity, weights=weights or None)
    generator = np.random.default_rng(0)
    with np.load(options.data) as stored:
        chosen = generator.permutation(len(stored["x"]))[: options.images]
        clean = stored["x"][chosen]
    constants = "cifar" if clean.shape[1] <= SMALL_IMAGE else "imagenet"
    streams = [
        corrupt(clean, name, options.severity, constants=constants, ids=chosen, seed=0) for name in options.corruptions
    ]
    if options.mixed:
        joined = np.concatenate(streams)
        streams = [joined[generator.permutation(len(joined))]]
    found = [changed(source, stream, options.batch, options.precision) for stream in streams]
    print(f"{identity}: {sum(one for one, _ in found)} of {sum(every for _, every in found)} answers changed")


if __name__ == "__main__":
    main()
