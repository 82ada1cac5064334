"""Records what every hypothesis of a wide product answers on the four corruptions kept for choosing settings.

    python scripts/fetch_cifar10.py DATA --train 3000
    python scripts/record_hypotheses.py DATA/cifar10_train.npz OUT [--images 1984] [--models ...] [--methods deyo roid]

Five lenses times paces from 0 to far too hot (times methods, times BatchNorm statistics), learning side by side without
restarts, on clean images and under the extra corruptions at severities 3 and 5, each alone or (continual) one after the
other: no test image and no test corruption is looked at.
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
DOMAINS = [(None, 0), *((name, severity) for severity in (3, 5) for name in EXTRA_CORRUPTIONS)]


def made(domain: tuple[str | None, int], images: np.ndarray) -> np.ndarray:
    name, severity = domain
    if name is None:
        return images
    return corrupt(images, name, severity, constants="cifar", ids=np.arange(len(images)), seed=0)


def orders(scenario: str, labels: np.ndarray, seed: int) -> np.ndarray:
    """(streams, images, 2): domain and image at every place."""
    generator, count = np.random.default_rng(seed), len(labels)
    if scenario == "mixed":
        places = np.stack(np.meshgrid(np.arange(len(DOMAINS)), np.arange(count), indexing="ij"), -1).reshape(-1, 2)
        return generator.permutation(places)[None, : 3 * count]
    if scenario == "continual":
        turns = generator.permutation(len(DOMAINS))
        own = [np.stack([np.full(count, domain), generator.permutation(count)], -1) for domain in turns]
        return np.concatenate(own)[None]
    if scenario == "label_shift":
        classes = generator.permutation(labels.max() + 1)
        place = np.concatenate([generator.permutation(np.flatnonzero(labels == label)) for label in classes])
    else:
        place = generator.permutation(count)
    return np.stack([np.stack([np.full(count, domain), place], -1) for domain in range(len(DOMAINS))])


def record(
    model: nn.Module, images: Tensor, order: Tensor, batch: int, paces: list[float], methods: list[str]
) -> tuple[Tensor, polytta.Adapted]:
    """(streams, hypotheses, images, classes) log-probabilities before each step."""
    streams = order.shape[0]
    mixed = any(is_batch_norm(module) for module in model.modules())
    adapted = polytta.adapt(
        model,
        preset="recommended",
        pace=paces,
        method=[METHODS.get(name, name) for name in methods],
        statistics=("source", "blend") if mixed else "auto",
        aggregate=Evidence(restart=False, sleep=False),
        populations=streams,
        precision="bf16" if images.is_cuda else "fp32",
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
    parser.add_argument("--models", nargs="+", default=["cifar10_resnet_gn", "cifar10_vit_ln"])
    parser.add_argument("--paces", type=float, nargs="+", default=list(PACES))
    parser.add_argument("--methods", nargs="+", default=["deyo"])
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS), choices=list(SCENARIOS))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with np.load(options.data) as stored:
        clean, labels = stored["x"][: options.images], stored["y"][: options.images]
    with ProcessPoolExecutor() as pool:  # before CUDA is touched
        pixels = list(pool.map(partial(made, images=clean), DOMAINS))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for name in options.models:
        source = create(f"bundled/{name}")
        images = torch.stack([source.preprocessing(list(one)) for one in pixels]).to(device)
        detail = torch.stack([fineness(one) for one in images])
        for scenario in options.scenarios:
            batch = SCENARIOS[scenario]
            order = torch.as_tensor(orders(scenario, labels, options.seed)).to(device)
            order = order[:, : order.shape[1] - order.shape[1] % batch]
            log_probs, adapted = record(source.module.to(device), images, order, batch, options.paces, options.methods)
            domains, items = order[..., 0].cpu().numpy(), order[..., 1].cpu().numpy()
            np.savez_compressed(
                options.out / f"{name}-{scenario}.npz",
                log_probs=log_probs.cpu().numpy(),
                labels=labels[items],
                domains=domains,
                fineness=detail[order[..., 0], order[..., 1]].cpu().numpy(),
                axes=json.dumps(adapted.config.axes()),
                anchors=np.array([adapted.config.anchors, adapted.config.twins]),
            )
            print(f"{name}, {scenario}: {tuple(log_probs.shape)}", flush=True)


if __name__ == "__main__":
    main()
