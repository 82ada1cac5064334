"""What a faster trunk costs in accuracy: bundled models on the bundled images, all corruptions, on a GPU.

    python benchmarks/precision.py [--images 1000] [--severity 3] [--seeds 3] [--models NAME ...]

DeYO with three particles and Grad, at the learning rate that ``polytta demo`` was tuned to. All corruptions and seeds
(of the order of the stream and of the random numbers) run as populations of one batch. Prints a Markdown table; a
spread is the standard deviation over seeds.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import fmean, stdev

import numpy as np
import torch
from tqdm import tqdm

import polytta
from polytta.data.bundled import cifar10_subset_indices, load_cifar10_subset
from polytta.data.corruption_names import COMMON_CORRUPTIONS
from polytta.data.corruptions import corrupt
from polytta.lab.demo.options import LEARNING_RATE
from polytta.models import create

MODELS = {"cifar10_resnet_gn": 1, "cifar10_vit_ln": 1, "cifar10_resnet_bn": 20}


def corrupted(name: str, severity: int, images: np.ndarray, ids: np.ndarray) -> np.ndarray:
    return corrupt(images, name, severity, constants="cifar", ids=ids, seed=0)


def accuracy(
    model: str, batch: int, precision: str, streams: torch.Tensor, labels: torch.Tensor, seeds: int
) -> np.ndarray:
    """(seeds, 15) percent right; ``streams`` is (15, N, 3, 32, 32)."""
    source = create(f"bundled/{model}").module.cuda()
    corruptions, images = streams.shape[:2]
    adapted = polytta.adapt(
        source,
        "source" if precision == "source" else "deyo",
        particles=1 if precision == "source" else 3,
        diversity="none" if precision == "source" else "grad",
        lr=LEARNING_RATE,
        populations=seeds * corruptions,
        seed=[seed for seed in range(seeds) for _ in range(corruptions)],
        precision="fp32" if precision == "source" else precision,
        batch_size=batch,
    )
    orders = torch.stack([torch.randperm(images, generator=torch.Generator().manual_seed(s)) for s in range(seeds)])
    streams, labels, orders = streams.cuda(), labels.cuda(), orders.cuda()
    right = torch.zeros(seeds, corruptions, device="cuda")
    for start in tqdm(range(0, images, batch), desc=f"{model} {precision}", leave=False):
        chosen = orders[:, start : start + batch]
        x = streams[:, chosen].transpose(0, 1).flatten(0, 1)
        answers = adapted(x).argmax(dim=-1).unflatten(0, (seeds, corruptions))
        right += (answers == labels[chosen].unsqueeze(1)).sum(dim=2)
    return (100 * right / images).cpu().numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--severity", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
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
    for model in options.models:
        batch = MODELS[model]
        preprocessing = create(f"bundled/{model}").preprocessing
        streams = torch.stack([preprocessing(list(corrupted_images)) for corrupted_images in pixels])
        found = {
            p: accuracy(model, batch, p, streams, labels, options.seeds) for p in ("source", "fp32", "tf32", "bf16")
        }
        cells = " | ".join(f"{values.mean():.2f}" for values in found.values())
        gaps = " | ".join(spread((found[p] - found["fp32"]).mean(axis=1)) for p in ("tf32", "bf16"))
        worst = np.abs((found["bf16"] - found["fp32"]).mean(axis=0)).max()
        print(f"| {model} | {batch} | {cells} | {gaps} | {worst:.1f} |", flush=True)


def spread(differences: np.ndarray) -> str:
    own = [float(value) for value in differences]
    return f"{fmean(own):+.2f}" + (f" ± {stdev(own):.2f}" if len(own) > 1 else "")


if __name__ == "__main__":
    main()
