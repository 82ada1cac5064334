"""Collapse, undefended beside guarded: when it is noticed, and what is left of the model on clean images.

    python scripts/collapse_table.py [--model bundled/cifar10_resnet_gn] [--methods tent deyo recommended]
        [--streams glass_blur one-class noise constant] [--rates 1 16 100] [--steps 60] [--seed 0] [--out table.json]

Every row is a stream (an attack by name, or a corruption), a method, and a learning rate as a multiple of the reference
one, of populations that go by pace the hot pace times that. Honest streams (clean, one class at the reference rate)
must raise no alarm. ``onset`` is the first look at which the undefended model has lost a hundredth of the source's
accuracy on clean images, ``lowest`` the lowest that the guarded one had at any look or right after its first alarm,
``settled`` what it has once it has seen one, two and three clean batches of 64: evidence about lenses is about the
images of late, and nothing for a guard to undo. Clean images are judged by ``predict``, which learns nothing from them.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

import polytta
from polytta.lab.attack.crafted import Attacker
from polytta.lab.attack.material import open_images
from polytta.lab.attack.run import accuracy
from polytta.lab.attack.streams import ATTACKS, Material, clean
from polytta.network.norms import is_batch_norm

REFERENCE_RATE, REFERENCE_PACE = 2.5e-4, 0.1
LOOK_EVERY = 10
SETTLES_ON = (64, 3)
"""Clean images of a batch, and how many batches."""


@dataclass
class Row:
    stream: str
    method: str
    rate: float
    source: float
    undefended: float = 0.0
    guarded: float = 0.0
    settled: tuple[float, ...] = ()
    worst_guarded: float = 100.0
    onset: int | None = None
    alarm: int | None = None
    collapses: int = 0


def settings_of(method: str, rate: float) -> dict[str, object]:
    if method == "recommended":
        return {"preset": "recommended", "pace": (0.0, rate * REFERENCE_PACE)}
    return {"method": method, "particles": 1, "lr": rate * REFERENCE_RATE}


def batches(
    stream: str, x: Tensor, corrupted: dict[str, Tensor], labels: Tensor, steps: int, size: int
) -> Iterator[Tensor]:
    images = corrupted.get(stream, x)
    unused = Attacker(torch.nn.Identity(), 0.0, 1, by_batch=False)
    material = Material(images, labels, size, steps, 0.5, unused)
    for step in ATTACKS.get(stream, clean)(material):
        yield step.x


class Judge:
    """Accuracy on clean images; particles that have not moved since are as good as they were."""

    def __init__(self, judged: tuple[Tensor, Tensor], model: torch.nn.Module) -> None:
        self._judged = judged
        # What populations answer depends on evidence too, and BatchNorm layers on what they go by.
        self._by_theta = not any(is_batch_norm(module) for module in model.modules())
        self._known: list[tuple[Tensor, float]] = []

    def __call__(self, adapted: polytta.Adapted) -> float:
        theta = adapted.theta.clone()
        for known, found in self._known if len(theta) == 1 and self._by_theta else ():
            if torch.equal(known, theta):
                return found
        found = accuracy(adapted, *self._judged)
        self._known = [*self._known[-3:], (theta, found)]
        return found


def run(
    row: Row,
    model: torch.nn.Module,
    given: Iterator[Tensor],
    honest: Tensor,
    judged: tuple[Tensor, Tensor],
    bar: tqdm,  # type: ignore[type-arg]
) -> None:
    settings, accuracy_of = settings_of(row.method, row.rate), Judge(judged, model)
    free, guarded = (polytta.adapt(model, **settings, guard=guard) for guard in ("off", "default"))  # type: ignore[arg-type]
    for number, x in enumerate(given, start=1):
        free(x), guarded(x)
        bar.update()
        report = guarded.last
        if row.alarm is None and report is not None and "collapsed" in report.health:
            row.alarm = number
            row.worst_guarded = min(row.worst_guarded, accuracy_of(guarded))
        if number % LOOK_EVERY == 0:
            row.guarded = accuracy_of(guarded)
            row.worst_guarded = min(row.worst_guarded, row.guarded)
            if row.onset is None and accuracy_of(free) < 0.99 * row.source:
                row.onset = number
    row.undefended = accuracy_of(free)
    row.collapses = sum(guarded.totals.collapses) + sum(guarded.totals.restarts)
    for batch in honest.split(SETTLES_ON[0])[: SETTLES_ON[1]]:
        guarded(batch)
        row.settled += (accuracy_of(guarded),)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="bundled/cifar10_resnet_gn")
    parser.add_argument("--methods", nargs="+", default=["tent", "eata", "sar", "deyo", "recommended"])
    parser.add_argument("--streams", nargs="+", default=["glass_blur", "one-class", "noise", "constant", "clean"])
    parser.add_argument("--rates", nargs="+", type=float, default=[1, 16, 100])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--judged-on", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    source, x, numbers = open_images(options.model, "bundled", options.images, options.seed)
    labels, first = torch.from_numpy(numbers), options.images - options.judged_on
    judged = x[first:], labels[first:]
    corrupted = {
        name: open_images(options.model, "bundled", options.images, options.seed, name)[1][:first]
        for name in options.streams
        if name not in ATTACKS
    }
    still = accuracy(polytta.adapt(source.module, "source", particles=1, statistics="source"), *judged)
    rows = [Row(s, m, r, still) for s in options.streams for m in options.methods for r in options.rates]
    line = "{:11} {:12} {:>5} | {:>10} {:>10} {:>7} {:>9} {:>16} | {:>5} {:>5} {:>9}"
    accuracies = ("undefended", "guarded", "lowest", "source", "settled")
    print(line.format("stream", "method", "rate", *accuracies, "onset", "alarm", "collapses"))
    with tqdm(total=len(rows) * options.steps, unit="step") as bar:
        for row in rows:
            given = batches(row.stream, x[:first], corrupted, labels[:first], options.steps, options.batch_size)
            run(row, source.module, given, x[:first], judged, bar)
            cells = (row.undefended, row.guarded, row.worst_guarded, row.source)
            shown = (
                f"x{row.rate:g}",
                *(f"{one:.1f}" for one in cells),
                " ".join(f"{one:.1f}" for one in row.settled),
                row.onset or "-",
                row.alarm or "-",
                row.collapses,
            )
            tqdm.write(line.format(row.stream, row.method, *map(str, shown)))
            if options.out is not None:
                options.out.write_text(json.dumps([vars(one) for one in rows[: rows.index(row) + 1]], indent=1))


if __name__ == "__main__":
    main()
