"""Runs base methods over a grid of learning rates on the four corruptions kept for tuning, and saves all predictions.

    python scripts/search_extras.py cifar10_test.npz OUT [--images 1000] [--severity 5]

One file per model, method and scenario: ``log_probs`` (rates, corruptions, images, classes) in stream order with
``labels`` and ``rates``. What a population that spans rates would have answered, with any weighting, can be worked out
from these files (``scripts/weigh_extras.py``); no test corruption is looked at. Needs a GPU to be quick.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch

import polytta
from polytta.data.corruption_names import EXTRA_CORRUPTIONS
from polytta.data.corruptions import corrupt
from polytta.models import create
from polytta.views import Views, horizontal_flip, unchanged

MODELS = ("cifar10_resnet_gn", "cifar10_vit_ln")
RATES = [1e-5 * 3.0**power for power in range(9)]
MIRROR = Views((unchanged, horizontal_flip), predict="mean")
METHODS = {
    "source": {"method": "source"},
    "source-mirror": {"method": "source", "views": MIRROR},
    "tent": {"method": "tent"},
    "sar": {"method": "sar"},
    "deyo": {"method": "deyo"},
    "deyo-mirror": {"method": "deyo", "views": MIRROR},
}


def corrupted(name: str, images: np.ndarray, ids: np.ndarray, severity: int) -> np.ndarray:
    return corrupt(images, name, severity, constants="cifar", ids=ids, seed=0)


def orders(scenario: str, labels: np.ndarray, corruptions: int) -> list[np.ndarray]:
    """(corruption, image) pairs of every stream."""
    generator = np.random.default_rng(0)
    count = len(labels)
    if scenario == "mixed":
        pairs = np.stack(np.meshgrid(np.arange(corruptions), np.arange(count), indexing="ij"), -1).reshape(-1, 2)
        return [generator.permutation(pairs)]
    place = np.argsort(labels, kind="stable") if scenario == "label_shift" else generator.permutation(count)
    return [np.stack([np.full(count, number), place], -1) for number in range(corruptions)]


def run(model: str, method: str, scenario: str, images: torch.Tensor, labels: np.ndarray, streams: list[np.ndarray]):
    batch = 1 if scenario == "batch1" else 64
    source = create(f"bundled/{model}").module.cuda()
    rates = [0.0] if method.startswith("source") else RATES
    adapted = polytta.adapt(
        source,
        particles=1,
        lr=[rate for rate in rates for _ in streams],
        populations=len(rates) * len(streams),
        precision="bf16",
        batch_size=batch,
        **METHODS[method],
    )
    order = torch.as_tensor(np.stack(streams))
    answers = []
    for start in range(0, order.shape[1] - order.shape[1] % batch, batch):
        chosen = order[:, start : start + batch]
        x = images[chosen[..., 0], chosen[..., 1]].cuda(non_blocking=True)
        answers.append(adapted(x.repeat(len(rates), 1, 1, 1, 1)).half())
    log_probs = torch.cat(answers, dim=1).unflatten(0, (len(rates), len(streams))).cpu().numpy()
    used = order[:, : log_probs.shape[2]].numpy()
    return {"log_probs": log_probs, "labels": labels[used[..., 1]], "domains": used[..., 0], "rates": np.array(rates)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--severity", type=int, default=5)
    parser.add_argument("--models", nargs="+", default=MODELS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    stored = np.load(options.data)
    chosen = np.random.default_rng(1).permutation(len(stored["y"]))[: options.images]
    clean, labels = stored["x"][chosen], stored["y"][chosen]
    with ProcessPoolExecutor(4) as pool:
        make = partial(corrupted, images=clean, ids=chosen, severity=options.severity)
        pixels = list(pool.map(make, EXTRA_CORRUPTIONS))
    for model in options.models:
        preprocessing = create(f"bundled/{model}").preprocessing
        images = torch.stack([preprocessing(list(one)) for one in pixels])
        for scenario in ("batch1", "label_shift", "mixed"):
            streams = orders(scenario, labels, len(EXTRA_CORRUPTIONS))
            for method in METHODS:
                found = run(model, method, scenario, images, labels, streams)
                right = found["log_probs"].argmax(-1) == found["labels"]
                mean = 100 * right.mean(axis=(1, 2))
                print(model, scenario, method, " ".join(f"{value:.1f}" for value in mean), flush=True)
                np.savez_compressed(options.out / f"{model}-{scenario}-{method}.npz", **found)


if __name__ == "__main__":
    main()
