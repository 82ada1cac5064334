"""What a faster trunk costs in accuracy: bundled models on the bundled images, all corruptions, on a GPU.

    python benchmarks/precision.py [--images 1000] [--severity 3]

DeYO with three particles and Grad, at the learning rate that ``polytta demo`` was tuned to. The fifteen corruptions run
as fifteen populations of one batch. Prints a Markdown table.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import fmean

import numpy as np
import torch
from tqdm import tqdm

import polytta
from polytta.data.bundled import cifar10_subset_indices, load_cifar10_subset
from polytta.data.corruption_names import COMMON_CORRUPTIONS
from polytta.data.corruptions import corrupt
from polytta.demo.settings import LEARNING_RATE
from polytta.models import create

MODELS = {"cifar10_resnet_gn": 1, "cifar10_vit_ln": 1, "cifar10_resnet_bn": 20}


def corrupted(name: str, severity: int, images: np.ndarray, ids: np.ndarray) -> np.ndarray:
    return corrupt(images, name, severity, constants="cifar", ids=ids, seed=0)


def accuracy(model: str, batch: int, precision: str, streams: torch.Tensor, labels: torch.Tensor) -> list[float]:
    """Percent right on each corruption; ``streams`` is (15, N, 3, 32, 32)."""
    source = create(f"bundled/{model}").module.cuda()
    adapted = polytta.adapt(
        source,
        "source" if precision == "source" else "deyo",
        particles=1 if precision == "source" else 3,
        diversity="none" if precision == "source" else "grad",
        lr=LEARNING_RATE,
        populations=len(streams),
        precision="fp32" if precision == "source" else precision,
        batch_size=batch,
    )
    right = torch.zeros(len(streams), device="cuda")
    steps = range(0, streams.shape[1], batch)
    for start in tqdm(steps, desc=f"{model} {precision}", leave=False):
        x = streams[:, start : start + batch].cuda()
        right += (adapted(x).argmax(dim=-1) == labels[start : start + batch].cuda()).sum(dim=1)
    return (100 * right / streams.shape[1]).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--severity", type=int, default=3)
    options = parser.parse_args()
    clean = load_cifar10_subset()
    chosen = np.random.default_rng(0).permutation(len(clean.images))[: options.images]
    images, ids = clean.images[chosen], np.asarray(cifar10_subset_indices())[chosen]
    with ProcessPoolExecutor() as pool:
        make = partial(corrupted, severity=options.severity, images=images, ids=ids)
        pixels = list(pool.map(make, COMMON_CORRUPTIONS))
    labels = torch.as_tensor(clean.labels[chosen])
    torch.backends.cudnn.allow_tf32 = False
    print("| | batch | source | fp32 | tf32 | bf16 | tf32 - fp32 | bf16 - fp32 | largest for one corruption |")
    print("|---|---|---|---|---|---|---|---|---|")
    for model, batch in MODELS.items():
        preprocessing = create(f"bundled/{model}").preprocessing
        streams = torch.stack([preprocessing(list(corrupted_images)) for corrupted_images in pixels])
        found = {p: accuracy(model, batch, p, streams, labels) for p in ("source", "fp32", "tf32", "bf16")}
        means = {name: fmean(values) for name, values in found.items()}
        worst = max(abs(a - b) for a, b in zip(found["bf16"], found["fp32"], strict=True))
        cells = " | ".join(f"{means[p]:.2f}" for p in ("source", "fp32", "tf32", "bf16"))
        gaps = " | ".join(f"{means[p] - means['fp32']:+.2f}" for p in ("tf32", "bf16"))
        print(f"| {model} | {batch} | {cells} | {gaps} | {worst:.1f} |", flush=True)


if __name__ == "__main__":
    main()
