"""What confidence is worth on corrupted images: accuracy of the most confident 80 % of answers, and AURC.

    python benchmarks/selective.py [images per corruption] [severity]

Source model against the recommended population, on bundled images; each keeps the answers it is most confident of.
"""

import sys
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

import polytta
from polytta.data.bundled import load_cifar10_subset
from polytta.data.corruptions import corrupt
from polytta.report.measures import area_under_risk, selective_risk

CORRUPTIONS = ("gaussian_noise", "defocus_blur", "fog", "jpeg_compression")
MODELS = ("bundled/cifar10_resnet_gn", "bundled/cifar10_resnet_bn", "bundled/cifar10_vit_ln")
BATCH, KEPT = 16, 0.8


def scores(made: "polytta.models.SourceModel", x: Tensor) -> Iterator[tuple[str, Tensor, Tensor]]:
    """(who answers and by what it is sure, confidence, answer) of every image."""
    adapted = polytta.adapt(made.module)
    found: dict[str, list[Tensor]] = {name: [] for name in ("source", "confidence", "mutual", "told", "plain")}
    for start in range(0, len(x), BATCH):
        images = x[start : start + BATCH]
        with torch.no_grad():
            plain = made.module(images).softmax(1).max(1)
        sure = adapted.uncertainty(images)
        found["source"].append(plain.values)
        found["plain"].append(plain.indices)
        found["confidence"].append(sure.confidence)
        found["mutual"].append(-sure.mutual_information)
        found["told"].append(adapted(images).argmax(1))
    whole = {name: torch.cat(values) for name, values in found.items()}
    yield "source, its confidence", whole["source"], whole["plain"]
    yield "adapted, its confidence", whole["confidence"], whole["told"]
    yield "adapted, mutual information", whole["mutual"], whole["told"]


def main(count: int = 400, severity: int = 3) -> None:
    torch.set_num_threads(1)
    data = load_cifar10_subset()
    chosen = np.random.default_rng(0).permutation(len(data))[:count]
    images, labels = np.stack([data[int(one)][0] for one in chosen]), torch.from_numpy(data.labels[chosen]).long()
    print(f"{count} images per corruption, severity {severity}, batch {BATCH}; percent right")
    print(f"{'':<28}{'':<30}{'all':>8}{'kept 80 %':>12}{'AURC':>8}")
    for name in MODELS:
        sums: dict[str, list[tuple[float, float, float]]] = {}
        for corruption in CORRUPTIONS:
            made = polytta.models.create(name)
            x = made.preprocessing(list(corrupt(images, corruption, severity, constants="cifar", ids=chosen)))
            for who, confidence, answer in scores(made, x):
                right = answer == labels
                kept = 1 - float(selective_risk(confidence, right)[round(KEPT * count) - 1])
                sums.setdefault(who, []).append((float(right.float().mean()), kept, area_under_risk(confidence, right)))
        for who, rows in sums.items():
            accuracy, kept, area = np.mean(rows, axis=0)
            print(f"{name:<28}{who:<30}{100 * accuracy:>8.1f}{100 * kept:>12.1f}{area:>8.3f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
