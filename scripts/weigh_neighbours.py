r"""What the images nearby are worth, however classes come, from the answers that ``record_hypotheses.py`` saved.

    python scripts/record_hypotheses.py DATA/cifar10_train.npz OUT --images 1984 --severities 5 --paces 0 \
        --scenarios mild
    python scripts/weigh_neighbours.py OUT [--batch 64]

Where nothing is learnt and there is no BatchNorm, answers do not depend on the order of images, so that one recording
serves every order: classes sorted; in runs of 64, 16, 4 and 2 images; drawn from shares that change after every 100
images (Dirichlet, of that concentration); only three of them; by chance, under one shift or one shift after the other.
A cell has the percentage right without and with the images nearby (``polytta.aggregate.chain``).
"""

import argparse
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from weigh_hypotheses import Run, read, weighed

from polytta.aggregate import chain
from polytta.views import LENSES

SLOT = 100
"""Images after which a stream of changing shares draws new ones."""
KINDS = {
    "sorted": "sorted",
    "run64": "runs of 64",
    "run16": "runs of 16",
    "run4": "runs of 4",
    "run2": "runs of 2",
    "shares0.03": "shares, 0.03",
    "shares0.1": "shares, 0.1",
    "shares0.3": "shares, 0.3",
    "shares1": "shares, 1",
    "three": "three classes",
    "chance": "by chance",
    "continual": "by chance, shift after shift",
}


def order(kind: str, labels: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Places of a stream's images, in another order."""
    left = {label: list(generator.permutation(np.flatnonzero(labels == label))) for label in np.unique(labels)}
    if kind == "sorted":
        return np.concatenate([left[label] for label in generator.permutation(list(left))])
    if kind == "three":
        chosen = generator.choice(list(left), 3, replace=False)
        return generator.permutation(np.flatnonzero(np.isin(labels, chosen)))
    if kind in ("chance", "continual"):
        return generator.permutation(len(labels))
    found: list[int] = []
    last = -1
    while any(left.values()):
        some = np.array([label for label, own in left.items() if own])
        counts = np.array([len(left[label]) for label in some], float)
        if kind.startswith("run"):
            # No run goes on as another one of the same class.
            counts[(some == last) & (len(some) > 1)] = 0
            last = generator.choice(some, p=counts / counts.sum())
            drawn = [last] * int(kind.removeprefix("run"))
        else:
            shares = generator.dirichlet([float(kind.removeprefix("shares"))] * len(some)) + 1e-12
            drawn = list(generator.choice(some, size=SLOT, p=shares / shares.sum()))
        found += [left[label].pop() for label in drawn if left[label]]
    return np.array(found)


def reordered(run: Run, kind: str, seed: int) -> Run:
    """A run whose streams come in another order; one after the other as a single stream where they are continual."""
    generator = np.random.default_rng(seed)
    orders = [order(kind, labels.numpy(), generator) for labels in run.labels]
    images = min(map(len, orders))
    places = torch.as_tensor(np.stack([own[: images - images % run.batch] for own in orders]))
    streams = torch.arange(len(orders)).unsqueeze(1)
    log_probs = run.log_probs.transpose(1, 2)[streams, places]
    told = [log_probs, run.labels[streams, places], run.domains[streams, places], run.fineness[streams, places]]
    if kind == "continual":
        told = [one.flatten(0, 1).unsqueeze(0) for one in told]
    return replace(run, log_probs=told[0].transpose(1, 2), labels=told[1], domains=told[2], fineness=told[3])


def percent(run: Run, answers: Tensor) -> float:
    return 100 * float((answers == run.labels).double().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    lenses = [lens.__name__ for lens in LENSES["sight"].transforms]
    files = sorted(options.folder.glob("*-mild.npz"))
    if not files:
        raise SystemExit(f"got {options.folder}, which holds no mild streams; allowed is what record_hypotheses wrote.")
    runs = [replace(read(file, [0.0], ["deyo"], lenses), batch=options.batch) for file in files]
    print("| classes | " + " | ".join(run.name.removesuffix("-mild") for run in runs) + " |")
    print("|---" * (len(runs) + 1) + "|")
    for kind in options.kinds:
        cells = []
        for run in runs:
            stream = reordered(run, kind, options.seed)
            with patch.object(chain, "read", lambda told, state: (told, dict(state))):
                without = percent(stream, weighed(stream))
            cells.append(f"{without:.1f} → {percent(stream, weighed(stream)):.1f}")
        print(f"| {KINDS[kind]} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
