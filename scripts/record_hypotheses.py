"""Records what every hypothesis of a wide product answers on the four corruptions kept for choosing settings.

    python scripts/fetch_cifar10.py DATA --train 3000
    python scripts/record_hypotheses.py DATA/cifar10_train.npz OUT [--images 1984] [--models ...] [--methods deyo roid]

Models are named as for `polytta bench` (`timm/NAME=WEIGHTS`, `module:function`), and see photographs as well.

Lenses times paces from 0 to far too hot (times methods, times BatchNorm statistics), learning side by side without
restarts, on clean images and under the extra corruptions at severities 3 and 5, each alone or (continual) one after the
other: no test image and no test corruption is looked at. `--faded` adds images in haze, in the dark and with a fifth of
their contrast, which no extra corruption is like.
OUT/MODEL-SCENARIO.npz holds ``log_probs`` (streams, hypotheses, images, classes), ``labels``, ``domains``,
``fineness``, ``axes`` and ``anchors``; ``scripts/weigh_hypotheses.py`` works out what evidence would have made of them,
and what each part of it is worth. Needs a GPU to be quick.
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

import polytta
from polytta.aggregate import Evidence
from polytta.data.corruption_names import EXTRA_CORRUPTIONS
from polytta.data.corruptions import corrupt
from polytta.models import create
from polytta.network.norms import is_batch_norm
from polytta.views import fineness

SCENARIOS = {"batch1": 1, "label_shift": 64, "mixed": 64, "mild": 64, "continual": 64}
METHODS: dict[str, object] = {"roid": {"name": "roid", "use_prior_correction": False, "window": 16}}
PACES = (0.0, 0.025, 0.1, 0.4, 1.6)
FADED = ("haze", "dark", "low_contrast")
SMALL_IMAGE = 64
"""Up to this many pixels a side, corruptions are as strong as those of CIFAR-10-C."""


def faded(name: str, images: np.ndarray) -> np.ndarray:
    """Images that have lost contrast."""
    pixels = images.astype(np.float32)
    if name == "haze":
        pixels = 0.3 * pixels + 0.6 * 255
    elif name == "dark":
        pixels = 0.25 * pixels
    else:
        mean = pixels.mean(axis=(1, 2), keepdims=True)
        pixels = mean + 0.2 * (pixels - mean)
    return pixels.round().astype(np.uint8)


def made(domain: tuple[str | None, int], images: np.ndarray) -> np.ndarray:
    name, severity = domain
    if name is None:
        return images
    if name in FADED:
        return faded(name, images)
    constants = "cifar" if images.shape[1] <= SMALL_IMAGE else "imagenet"
    return corrupt(images, name, severity, constants=constants, ids=np.arange(len(images)), seed=0)


def orders(scenario: str, labels: np.ndarray, domains: int, seed: int) -> np.ndarray:
    """(streams, images, 2): domain and image at every place."""
    generator, count = np.random.default_rng(seed), len(labels)
    if scenario == "mixed":
        places = np.stack(np.meshgrid(np.arange(domains), np.arange(count), indexing="ij"), -1).reshape(-1, 2)
        return generator.permutation(places)[None, : 3 * count]
    if scenario == "continual":
        turns = generator.permutation(domains)
        own = [np.stack([np.full(count, domain), generator.permutation(count)], -1) for domain in turns]
        return np.concatenate(own)[None]
    if scenario == "label_shift":
        classes = generator.permutation(labels.max() + 1)
        place = np.concatenate([generator.permutation(np.flatnonzero(labels == label)) for label in classes])
    else:
        place = generator.permutation(count)
    return np.stack([np.stack([np.full(count, domain), place], -1) for domain in range(domains)])


def record(
    model: nn.Module,
    images: Tensor,
    order: Tensor,
    batch: int,
    paces: list[float],
    methods: list[str],
    lenses: list[str] | None,
    precision: str,
) -> tuple[Tensor, polytta.Adapted]:
    """(streams, hypotheses, images, classes) log-probabilities before each step."""
    streams = order.shape[0]
    mixed = any(is_batch_norm(module) for module in model.modules())
    adapted = polytta.adapt(
        model,
        preset="recommended",
        lenses=lenses,
        pace=paces,
        method=[METHODS.get(name, name) for name in methods],
        statistics=("source", "blend") if mixed else "auto",
        aggregate=Evidence(restart=False, sleep=False),
        populations=streams,
        precision=precision,
        particles_at_once=None if images.is_cuda else 8,
    )
    found = []
    for start in tqdm(range(0, order.shape[1], batch), leave=False):
        chosen = order[:, start : start + batch]
        adapted(images[chosen[..., 0], chosen[..., 1]])
        logits = adapted.last_logits
        assert logits is not None
        found.append(logits.float().log_softmax(dim=-1).half().unflatten(0, (streams, -1)))
    return torch.cat(found, dim=2), adapted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--images", type=int, default=1984)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", nargs="+", default=["bundled/cifar10_resnet_gn", "bundled/cifar10_vit_ln"])
    parser.add_argument("--paces", type=float, nargs="+", default=list(PACES))
    parser.add_argument("--methods", nargs="+", default=["deyo"])
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS), choices=list(SCENARIOS))
    parser.add_argument("--severities", type=int, nargs="+", default=[3, 5])
    parser.add_argument("--lenses", nargs="+")
    parser.add_argument("--faded", action="store_true")
    parser.add_argument("--precision", help="bf16 on a CUDA device, else fp32")
    options = parser.parse_args()
    domains = [(None, 0), *((name, severity) for severity in options.severities for name in EXTRA_CORRUPTIONS)]
    domains += [(name, 5) for name in FADED] if options.faded else []
    options.out.mkdir(parents=True, exist_ok=True)
    with np.load(options.data) as stored:
        clean, labels = stored["x"][: options.images], stored["y"][: options.images]
    with ProcessPoolExecutor() as pool:  # before CUDA is touched
        pixels = list(pool.map(partial(made, images=clean), domains))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for name in options.models:
        identity, _, weights = name.partition("=")
        source = create(identity, weights=weights or None)
        short = identity.split("/")[-1].split(":")[0]
        images = torch.stack([source.preprocessing(list(one)) for one in pixels]).to(device)
        detail = torch.stack([fineness(one) for one in images])
        for scenario in options.scenarios:
            batch = SCENARIOS[scenario]
            order = torch.as_tensor(orders(scenario, labels, len(domains), options.seed)).to(device)
            order = order[:, : order.shape[1] - order.shape[1] % batch]
            log_probs, adapted = record(
                source.module.to(device),
                images,
                order,
                batch,
                options.paces,
                options.methods,
                options.lenses,
                options.precision or ("bf16" if device == "cuda" else "fp32"),
            )
            domain_of, items = order[..., 0].cpu().numpy(), order[..., 1].cpu().numpy()
            np.savez_compressed(
                options.out / f"{short}-{scenario}.npz",
                log_probs=log_probs.cpu().numpy(),
                labels=labels[items],
                domains=domain_of,
                fineness=detail[order[..., 0], order[..., 1]].cpu().numpy(),
                axes=json.dumps(adapted.config.axes()),
                anchors=np.array([adapted.config.anchors, adapted.config.twins]),
            )
            print(f"{short}, {scenario}: {tuple(log_probs.shape)}", flush=True)


if __name__ == "__main__":
    main()
