"""What each part of evidence is worth, from the answers that ``record_hypotheses.py`` saved.

    python scripts/weigh_hypotheses.py FOLDER [--paces 0 0.1] [--methods deyo roid] [--lenses unchanged farther ...]

Without restarts a particle learns the same alone or in a population, so every way to weigh them can be worked out
afterwards, with the package's own code. A line has, for each model and scenario, the gain over the source model, mean
over the corruptions and (worst).
"""

import argparse
import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from polytta.aggregate import Evidence, chain, evidence
from polytta.views import LENSES

PARTS: dict[str, dict[str, object]] = {
    "evidence": {},
    "without agreement": {"AGREEMENT": 0.0},
    "without fineness": {"SHRINKAGE": float("inf")},
    "fineness after fifty images, as before": {"SHRINKAGE": 50.0},
    "fineness after two images": {"SHRINKAGE": 2.0},
    "without doubt": {"DOUBT": 0.0},
    "without sameness": {"sameness": lambda state, populations=1: torch.zeros_like(state["mean_entropy"])},
    "without the images nearby": {"chain.read": lambda told, state: (told, dict(state))},
    "half the margin for them": {"chain.MARGIN": chain.MARGIN / 2},
    "what was before the batch": {"with_batch": lambda known, seen: known},
    "batch statistics by stored ones": {"CAUTION": 1e9},
    "without anchors": {"anchors": lambda state: torch.arange(state["mean_probs"].shape[0])},
    "half as sharp": {"SHARPNESS": evidence.SHARPNESS / 2},
    "twice as sharp": {"SHARPNESS": evidence.SHARPNESS * 2},
}


@dataclass(frozen=True)
class Run:
    """Saved answers of one model in one scenario."""

    name: str
    batch: int
    log_probs: Tensor
    labels: Tensor
    domains: Tensor
    fineness: Tensor
    anchors: Tensor
    twins: Tensor

    def gains(self, answers: Tensor) -> Tensor:
        """Points over the source model, which is the first hypothesis, per corruption."""
        found = []
        for given in (answers, self.log_probs[:, 0].argmax(dim=-1)):
            right = (given == self.labels).float()
            found.append(torch.stack([100 * right[self.domains == n].mean() for n in self.domains.unique()]))
        return found[0] - found[1]


def read(file: Path, paces: list[float], methods: list[str], lenses: list[str]) -> Run:
    """A file, as if the population had only some of the paces, methods and lenses."""
    stored = np.load(file)
    # What all have in common is no axis.
    common = {"pace": f"pace {paces[0]:g}", "method": methods[0]}
    axes = [{**common, **own} for own in json.loads(str(stored["axes"]))]
    wanted = {f"pace {pace:g}" for pace in paces}
    kept = [
        n
        for n, own in enumerate(axes)
        if own["pace"] in wanted
        and own["lens"] in lenses
        # Who never learns is there once, under the first method's name.
        and (own["pace"] == "pace 0" or own["method"] in methods)
    ]
    anchors, twins = (torch.tensor([kept.index(row[n]) for n in kept]) for row in stored["anchors"].tolist())
    return Run(
        file.stem,
        1 if "batch1" in file.stem else 64,
        torch.as_tensor(stored["log_probs"]).float()[:, kept],
        *(torch.as_tensor(stored[name]) for name in ("labels", "domains", "fineness")),
        anchors,
        twins,
    )


def weighed(run: Run) -> Tensor:
    """(streams, images) answers."""
    streams, count, images, classes = run.log_probs.shape
    first = torch.arange(streams).unsqueeze(1) * count
    rows = [(first + own).flatten() for own in (run.anchors, run.twins)]
    state: dict[str, Tensor] = evidence.begin(streams * count, classes, run.log_probs, by_fineness=True)
    aggregate, answers = Evidence(), []
    for start in range(0, images, run.batch):
        told, detail = run.log_probs[:, :, start : start + run.batch], run.fineness[:, start : start + run.batch]
        known = evidence.with_anchors(state, *rows)
        state = evidence.observe(known, told.flatten(0, 1), detail)
        answer, changed = aggregate.answer(told, evidence.with_batch(known, state), detail)
        state.update(changed)
        answers.append(answer.argmax(dim=-1))
    return torch.cat(answers, dim=1)


def best_with_labels(run: Run) -> Tensor:
    """(streams, images) answers of the hypothesis that is right most often under each corruption."""
    told = run.log_probs.argmax(dim=-1)
    right = told == run.labels.unsqueeze(1)
    answers = torch.zeros_like(run.labels)
    for domain in run.domains.unique():
        here = run.domains == domain
        best = int((right & here.unsqueeze(1)).sum(dim=(0, 2)).argmax())
        answers[here] = told[:, best][here]
    return answers


def line(label: str, runs: list[Run], weigh: Callable[[Run], Tensor]) -> None:
    cells = []
    for run in runs:
        gains = run.gains(weigh(run))
        cells.append(f"{gains.mean():+.1f} ({gains.min():+.1f})")
    print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--paces", type=float, nargs="+", default=[0.0, 0.1])
    parser.add_argument("--methods", nargs="+", default=["deyo"])
    parser.add_argument("--lenses", nargs="+", default=[lens.__name__ for lens in LENSES["sight"].transforms])
    options = parser.parse_args()
    files = sorted(options.folder.glob("*.npz"))
    lenses = options.lenses
    runs = [read(file, options.paces, options.methods, lenses) for file in files]
    if not runs:
        raise SystemExit(f"got {options.folder}, which holds no records; allowed is what record_hypotheses.py wrote.")
    print("| | " + " | ".join(run.name for run in runs) + " |\n" + "|---" * (len(runs) + 1) + "|")
    line("equal weights", runs, lambda run: run.log_probs.softmax(dim=-1).mean(dim=1).argmax(dim=-1))
    line("the best one under each corruption, picked with labels", runs, best_with_labels)
    for label, changes in PARTS.items():
        with ExitStack() as changed:
            for name, value in changes.items():
                changed.enter_context(patch(f"{evidence.__name__}.{name}", value))
            line(label, runs, weighed)
    for lens in lenses[1:]:
        others = [other for other in lenses if other != lens]
        line(f"without {lens}", [read(file, options.paces, options.methods, others) for file in files], weighed)
    line("nothing learnt", [read(file, options.paces[:1], options.methods, lenses) for file in files], weighed)


if __name__ == "__main__":
    main()
