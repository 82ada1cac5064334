"""What populations that span learning rates would have answered, from the predictions ``search_extras.py`` saved.

    python scripts/weigh_extras.py FOLDER

Particles of rate 0 are the source model. Without interaction a particle is the same alone or in a population, so its
saved predictions are those it would have made; only their weights are worked out here, image by image, with the
package's own evidence.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from polytta.aggregate import evidence, mean_probs

MODELS = ("cifar10_resnet_gn", "cifar10_vit_ln")
POPULATIONS = {
    "0, 9e-5": [2],
    "0, 3e-5, 9e-5": [1, 2],
    "0, 3e-5, 9e-5, 2.7e-4": [1, 2, 3],
    "0, 3e-5, 9e-5, 8.1e-4": [1, 2, 4],
    "0, 1e-5, 9e-5, 8.1e-4": [0, 2, 4],
    "0, 1e-5 ... 2.4e-3": [0, 1, 2, 3, 4, 5],
}


def load(folder: Path, model: str, method: str) -> tuple[Tensor, Tensor]:
    stored = np.load(folder / f"{model}-batch1-{method}.npz")
    return torch.from_numpy(stored["log_probs"]).float(), torch.from_numpy(stored["labels"])


def weighted(log_probs: Tensor) -> Tensor:
    """(images, classes) answers of the particles (K, images, classes), each image weighted by what came before it."""
    state = evidence.begin(log_probs.shape[0], log_probs.shape[2], log_probs)
    answers = []
    for place in range(log_probs.shape[1]):
        own = log_probs[:, place : place + 1]
        answers.append(evidence.combine(state, own)[0] if place else mean_probs(own)[0])
        state = evidence.observe(state, own)
    return torch.stack(answers)


def percent(answers: Tensor, labels: Tensor) -> float:
    return 100 * float((answers.argmax(dim=-1) == labels).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    print("| | rates | equal weights | evidence |\n|---|---|---|---|")
    for model in MODELS:
        for method in ("tent", "deyo", "deyo-mirror"):
            source, labels = load(folder, model, "source-mirror" if method.endswith("mirror") else "source")
            adapted, _ = load(folder, model, method)
            for name, rates in POPULATIONS.items():
                population = torch.cat([source, adapted[rates]])
                streams = [(population[:, number], labels[number]) for number in range(population.shape[1])]
                equal = np.mean([percent(mean_probs(one), truth) for one, truth in streams])
                trusted = np.mean([percent(weighted(one), truth) for one, truth in streams])
                print(f"| {model}, {method} | {name} | {equal:.1f} | {trusted:.1f} |", flush=True)


if __name__ == "__main__":
    main()
