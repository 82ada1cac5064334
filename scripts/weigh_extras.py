"""What populations of lenses would have answered, from the predictions ``search_extras.py`` saved.

    python scripts/weigh_extras.py FOLDER

Without interaction a particle learns the same alone or in a population, but for its own random numbers and a learning
rate up to a fifth higher or lower, so the saved predictions are close to those it would have made; only their weights
are worked out here, batch by batch, with the package's own evidence: over all images, since how fine their detail was
is not saved, and every particle its own anchor. Every line has percent right for each model and
scenario, and how far the worst of the four corruptions is above the source model. A second table has every lens alone
on every corruption.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from polytta.aggregate import Evidence, MeanLogits, MeanProbs, evidence
from polytta.data.corruption_names import EXTRA_CORRUPTIONS

SCENARIOS = {"batch1": 1, "mixed": 64, "label_shift": 64}
OPTICS = ("unchanged", "farther", "sharper", "mirror", "much farther")
POPULATIONS: dict[str, Sequence[str]] = {
    "unchanged, mirror": ("unchanged", "mirror"),
    "the first three of optics": OPTICS[:3],
    "optics without mirror": [name for name in OPTICS if name != "mirror"],
    "**optics**": OPTICS,
    "optics, closer": (*OPTICS, "closer"),
    "optics, harder": (*OPTICS, "harder"),
    "optics, softer": (*OPTICS, "softer"),
}
# Which of the saved rates each model's particles learn with (their numbers, at batch 1 and at batch 64 alike).
RATES = {"cifar10_resnet_gn": 2, "cifar10_vit_ln": 1}
Weighing = Callable[[Tensor, int], Tensor]


@dataclass(frozen=True)
class Run:
    """Saved predictions of one model in one scenario: (lenses, rates, streams, images, classes)."""

    model: str
    batch: int
    lenses: list[str]
    log_probs: Tensor
    labels: Tensor
    domains: Tensor

    def population(self, lenses: Sequence[str], rates: Sequence[int]) -> Tensor:
        """(streams, K, images, classes) of every lens with every rate."""
        chosen = [self.log_probs[self.lenses.index(name), rate] for name in lenses for rate in rates]
        return torch.stack(chosen, dim=1)

    def percent(self, answers: Tensor) -> Tensor:
        """Right answers per corruption."""
        right = (answers.argmax(dim=-1) == self.labels).float()
        return torch.stack([100 * right[self.domains == number].mean() for number in self.domains.unique()])


def load(folder: Path, model: str, scenario: str) -> Run:
    stored = np.load(folder / f"{model}-{scenario}.npz")
    tensors = [torch.from_numpy(stored[name]) for name in ("log_probs", "labels", "domains")]
    return Run(model, SCENARIOS[scenario], list(stored["lenses"]), tensors[0].float(), *tensors[1:])


def weighted(log_probs: Tensor, batch: int) -> Tensor:
    """(streams, images, classes) answers, each batch weighed by what came before it."""
    streams, particles, images, classes = log_probs.shape
    state = evidence.begin(streams * particles, classes, log_probs, by_fineness=True)
    answers = []
    for start in range(0, images, batch):
        own = log_probs[:, :, start : start + batch]
        detail = torch.zeros(streams, own.shape[2])
        answer, changed = Evidence().answer(own, state, detail)
        answers.append(answer)
        state = {**evidence.observe(state, own.flatten(0, 1), detail), **changed}
    return torch.cat(answers, dim=1)


def line(
    name: str, runs: Sequence[Run], lenses: Sequence[str], weigh: Weighing, rates: Sequence[int] | None = None
) -> None:
    cells, margins = [], []
    for run in runs:
        own = run.percent(weigh(run.population(lenses, rates or [RATES[run.model]]), run.batch))
        source = run.percent(run.population(["unchanged"], [0])[:, 0])
        cells.append(f"{own.mean():.1f}")
        margins.append(float((own - source).min()))
    print(f"| {name} | " + " | ".join(cells) + f" | {min(margins):+.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    runs = [load(folder, model, scenario) for model in RATES for scenario in SCENARIOS]
    print(
        "| lenses, weighed by evidence | GN batch 1 | mixed | label shift | ViT batch 1 | mixed | label shift | worst |"
    )
    print("|---|---|---|---|---|---|---|---|")
    line("source model", runs, ["unchanged"], lambda p, _: MeanProbs().combine(p, {}, torch.zeros(())), [0])
    line("unchanged, at the four lowest rates", runs, ["unchanged"], weighted, [0, 1, 2, 3])
    for name, lenses in POPULATIONS.items():
        line(name, runs, lenses, weighted)
    line("optics, nothing learnt", runs, OPTICS, weighted, [0])
    line("optics, mean probability", runs, OPTICS, lambda p, _: MeanProbs().combine(p, {}, torch.zeros(())))
    line("optics, geometric mean", runs, OPTICS, lambda p, _: MeanLogits().combine(p, {}, torch.zeros(())))
    chosen = evidence.SHARPNESS
    for sharpness in (2.0, 10.0, 20.0):
        evidence.SHARPNESS = sharpness
        line(f"optics, sharpness {sharpness:.0f} instead of {chosen:.0f}", runs, OPTICS, weighted)
    evidence.SHARPNESS = chosen
    print("\n| nothing learnt, batch 1 | " + " | ".join(runs[0].lenses) + " |")
    print("|---" * (len(runs[0].lenses) + 1) + "|")
    for run in (run for run in runs if run.batch == 1):
        each = torch.stack([run.percent(run.population([lens], [0])[:, 0]) for lens in run.lenses], dim=1)
        for name, row in zip(EXTRA_CORRUPTIONS, each, strict=True):
            print(f"| {run.model}, {name} | " + " | ".join(f"{value:.1f}" for value in row) + " |")


if __name__ == "__main__":
    main()
