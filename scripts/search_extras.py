"""Tries learning rates and lenses on the four corruptions kept for tuning, and saves all predictions.

    python scripts/search_extras.py cifar10_test.npz OUT [--images 2000] [--severity 5]

Prints percent right of Tent, SAR and DeYO over a grid of learning rates, and of DeYO looking through one lens at a
time. The latter's predictions are saved, one file per model and scenario: ``log_probs`` (lenses, rates, streams,
images, classes) in stream order, with ``labels`` and ``domains``. What a population of lenses would have answered
follows from them (``scripts/weigh_extras.py``). No test corruption is looked at, nor any bundled image: the images are
drawn from the rest of the CIFAR-10 test set. Needs a GPU to be quick.
"""

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import polytta
from polytta.data.bundled import cifar10_subset_indices
from polytta.data.corruption_names import EXTRA_CORRUPTIONS
from polytta.data.corruptions import corrupt
from polytta.models import create
from polytta.views import View, farther, horizontal_flip, much_farther, sharper, softer, unchanged

MODELS = ("cifar10_resnet_gn", "cifar10_vit_ln")
SCENARIOS = {"batch1": 1, "mixed": 64, "label_shift": 64}
ALL_RATES = [1e-5 * 3.0**power for power in range(9)]
LENS_RATES = {1: [0.0, 1e-5, 3e-5, 9e-5, 2.7e-4, 8.1e-4], 64: [0.0, 9e-5, 2.7e-4, 8.1e-4, 2.43e-3, 7.29e-3]}


def closer(x: Tensor) -> Tensor:
    """The middle, larger."""
    size = [round(side * 9 / 8) for side in x.shape[-2:]]
    large = functional.interpolate(x, size=size, mode="bilinear", antialias=True, align_corners=False)
    top, left = (size[0] - x.shape[-2]) // 2, (size[1] - x.shape[-1]) // 2
    return large[..., top : top + x.shape[-2], left : left + x.shape[-1]]


def a_little_sharper(x: Tensor) -> Tensor:
    """Half of what ``sharper`` adds."""
    return (x + sharper(x)) / 2


def harder(x: Tensor) -> Tensor:
    """Half as much contrast again, around each image's mean."""
    mean = x.mean(dim=(-3, -2, -1), keepdim=True)
    return mean + 1.5 * (x - mean)


LENSES: dict[str, View] = {
    "unchanged": unchanged,
    "mirror": horizontal_flip,
    "farther": farther,
    "much farther": much_farther,
    "closer": closer,
    "sharper": sharper,
    "a little sharper": a_little_sharper,
    "softer": softer,
    "harder": harder,
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


def run(
    model: nn.Module,
    method: str,
    lenses: Sequence[str],
    rates: Sequence[float],
    batch: int,
    images: Tensor,
    order: Tensor,
) -> Tensor:
    """(lenses, rates, streams, images, classes) log-probabilities, every combination a population of its own."""
    streams = order.shape[0]
    adapted = polytta.adapt(
        model,
        method,
        particles=1,
        lr=[rate for _ in lenses for rate in rates for _ in range(streams)],
        populations=len(lenses) * len(rates) * streams,
        precision="bf16" if images.is_cuda else "fp32",
        batch_size=batch,
    )
    answers = []
    for start in range(0, order.shape[1] - order.shape[1] % batch, batch):
        chosen = order[:, start : start + batch]
        x = images[chosen[..., 0], chosen[..., 1]]
        seen = torch.stack([LENSES[name](x.flatten(0, 1)).unflatten(0, x.shape[:2]) for name in lenses])
        every = seen.unsqueeze(1).expand(-1, len(rates), *seen.shape[1:]).flatten(0, 2)
        answers.append(adapted(every.contiguous()).half())
    return torch.cat(answers, dim=1).unflatten(0, (len(lenses), len(rates), streams))


def percent(log_probs: Tensor, labels: np.ndarray) -> Tensor:
    """(lenses, rates) accuracy over all streams."""
    right = log_probs.argmax(dim=-1) == torch.as_tensor(labels, device=log_probs.device)
    return 100 * right.float().mean(dim=(2, 3))


def tell(name: str, values: Tensor) -> None:
    print(f"  {name:18}" + " ".join(f"{value:5.1f}" for value in values), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--severity", type=int, default=5)
    parser.add_argument("--models", nargs="+", default=MODELS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    stored = np.load(options.data)
    others = np.setdiff1d(np.arange(len(stored["y"])), cifar10_subset_indices())
    ids = np.random.default_rng(1).permutation(others)[: options.images]
    clean, truth = stored["x"][ids], stored["y"][ids].astype(np.int64)
    with ProcessPoolExecutor(4) as pool:
        make = partial(corrupted, images=clean, ids=ids, severity=options.severity)
        pixels = list(pool.map(make, EXTRA_CORRUPTIONS))
    for name in options.models:
        source = create(f"bundled/{name}")
        model = source.module.to(device)
        images = torch.stack([source.preprocessing(list(one)) for one in pixels]).to(device)
        for scenario, batch in SCENARIOS.items():
            order = torch.as_tensor(np.stack(orders(scenario, truth, len(EXTRA_CORRUPTIONS)))).to(device)
            order = order[:, : order.shape[1] - order.shape[1] % batch]
            domains, labels = order[..., 0].cpu().numpy(), truth[order[..., 1].cpu().numpy()]
            rates = LENS_RATES[batch]
            print(f"{name}, {scenario}: DeYO through a lens, rates", *rates)
            found = run(model, "deyo", list(LENSES), rates, batch, images, order)
            for lens, row in zip(LENSES, percent(found, labels), strict=True):
                tell(lens, row)
            np.savez_compressed(
                options.out / f"{name}-{scenario}.npz",
                log_probs=found.cpu().numpy(),
                labels=labels,
                domains=domains,
                rates=np.array(rates),
                lenses=np.array(list(LENSES)),
            )
            print(f"{name}, {scenario}: rates", *(f"{rate:.3g}" for rate in ALL_RATES))
            for method in ("tent", "sar", "deyo"):
                found = run(model, method, ["unchanged"], ALL_RATES, batch, images, order)
                tell(method, percent(found, labels)[0])


if __name__ == "__main__":
    main()
