"""Milliseconds per batch of every CLIP row with the bundled mini CLIP, beside a plain loop, as a CSV.

    PYTHONPATH=src python scripts/time_clip.py --out docs/results/clip_times.csv

Rows are those of benchmarks/grids/clip_batch128.toml. The plain loop is WATT as one would write it at first: one model
after the other, one template after the other, one view after the other, ``torch.optim.Adam``, weights averaged. Every
figure is the median of repeats after a warm-up, of whole calls: predicting and learning from a batch. Rows are warmed
up, and recorded where the engine records, side by side, and timed one after the other while all others wait.
"""

from __future__ import annotations

import argparse
import copy
import csv
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polytta.api import adapt_with
from polytta.clip import ZeroShot
from polytta.lab.bench import read_grid
from polytta.methods import resolve_method
from polytta.methods.text_targets import TEMPERATURE
from polytta.methods.watt import WATT
from polytta.models import create
from polytta.particles import choose_engine
from polytta.settings import Settings

GRID = Path(__file__).parents[1] / "benchmarks/grids/clip_batch128.toml"
# What a plain loop is written for, and which row it does the work of.
PLAIN = ("watt_s", "watt_p", "watt_s_aug")
AGAINST = {"watt_s_aug_kl": "watt_s_aug", "watt_s_aug_svgd": "watt_s_aug", "watt_s_aug_grad": "watt_s_aug"}
FLIPS: tuple[Callable[[Tensor], Tensor], ...] = (lambda x: x, lambda x: x.flip(-1), lambda x: x.flip(-2))
COLUMNS = ("row", "batch", "device", "precision", "engine", "milliseconds", "least", "most", "repeats", "times_faster")


class PlainWATT:
    """WATT for K models, one after the other."""

    def __init__(
        self,
        network: ZeroShot,
        method: WATT,
        *,
        models: int = 1,
        flips: bool = False,
        lr: float = 1e-3,
        bf16: bool = False,
    ) -> None:
        self.network, self.method, self.lr, self.bf16 = network, method, lr, bf16
        self.views = FLIPS if flips else FLIPS[:1]
        self.image = copy.deepcopy(network.image).requires_grad_(False)
        self.weights = [p for m in self.image.modules() if isinstance(m, nn.LayerNorm) for p in m.parameters()]
        for one in self.weights:
            one.requires_grad_(True)
        self.source = [one.detach().clone() for one in self.weights]
        places = list(range(len(network.templates)))
        shuffled = torch.Generator().manual_seed(0)
        self.orders = [places] + [torch.randperm(len(places), generator=shuffled).tolist() for _ in range(models - 1)]

    def __call__(self, x: Tensor) -> Tensor:
        """(B, C) log-probabilities after adapting to a batch."""
        answers = [self._adapted(x, order) for order in self.orders]
        return torch.stack(answers).logsumexp(dim=0) - torch.tensor(float(len(answers))).log().item()

    def _adapted(self, x: Tensor, order: Sequence[int]) -> Tensor:
        method, average = self.method, self.source
        self._put(average)
        optimizer = torch.optim.Adam(self.weights, lr=self.lr)
        for number in range(method.rounds):
            arrived: list[list[Tensor]] = []
            for template in order:
                if method.parallel:
                    self._put(average)
                    if number == 0:
                        optimizer = torch.optim.Adam(self.weights, lr=self.lr)
                for _ in range(method.steps):
                    optimizer.zero_grad()
                    for view in self.views:
                        self._loss(view(x), self.network.text_features[template]).backward()
                    optimizer.step()
                arrived.append([one.detach().clone() for one in self.weights])
            average = [torch.stack(own).mean(dim=0) for own in zip(*arrived, strict=True)]
            self._put(average)
        with torch.no_grad():
            return self.network.classify(self._features(x), self.network.class_features).log_softmax(dim=-1)

    def _put(self, values: Sequence[Tensor]) -> None:
        with torch.no_grad():
            for one, value in zip(self.weights, values, strict=True):
                one.copy_(value)

    def _features(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.bf16):
            found: Tensor = self.image(x)
        return F.normalize(found.float(), dim=-1)

    def _loss(self, x: Tensor, every: Tensor) -> Tensor:
        images = self._features(x)
        text = every[(images.detach() @ every.mT).argmax(dim=-1)]
        told = (self.network.logit_scale.exp() * images @ text.mT).log_softmax(dim=-1)
        wanted = ((images @ images.mT + text @ text.mT) / 2 / TEMPERATURE).softmax(dim=-1)
        return -(wanted.mT * told).sum(dim=-1).mean()


@dataclass(frozen=True)
class Timing:
    """Whole calls on one batch size."""

    row: str
    batch: int
    engine: str
    milliseconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)


def milliseconds(call: Callable[[Tensor], object], batches: Sequence[Tensor], seconds: float) -> list[float]:
    """Of each call; at least two of them, then until the time is over."""
    found: list[float] = []
    for x in batches:
        if len(found) >= 2 and sum(found) > 1000 * seconds:
            break
        if x.is_cuda:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start.record()
            call(x)
            end.record()
            torch.cuda.synchronize()
            found.append(start.elapsed_time(end))
        else:
            begun = time.perf_counter()
            call(x)
            found.append(1000 * (time.perf_counter() - begun))
    return found


def rows_of(grid: Path, precision: str, quick: bool) -> dict[str, dict[str, Any]]:
    """{label: options of polytta.adapt}; quick ones learn for a step or two."""
    rows = {label: {**row, "precision": precision} for label, row in read_grid(grid).rows().items()}
    shorter = {"watt_s": {"steps": 1, "rounds": 1}, "watt_p": {"steps": 1, "rounds": 1}, "clipartt": {"steps": 1}}
    shorter["tpt"] = {"views": 4, "share": 0.5}
    for row in rows.values() if quick else ():
        method = row.get("method")
        own = dict(method) if isinstance(method, Mapping) else {"name": method}
        if own["name"] in shorter:
            row["method"] = {**own, **shorter[own["name"]]}
        if "steps" in row:
            row["steps"] = 1
    return rows


def plain_of(network: ZeroShot, row: Mapping[str, Any], precision: str, rounds: int | None = None) -> PlainWATT:
    method = resolve_method(row["method"])
    assert isinstance(method, WATT)
    method = replace(method, rounds=rounds or method.rounds)
    models, flips = int(row.get("particles", 1)), row.get("views") == "flips"
    return PlainWATT(network, method, models=models, flips=flips, lr=row["lr"], bf16=precision == "bf16")


def timed(label: str, batch: int, options: argparse.Namespace, wait: Callable[[], object]) -> list[Timing]:
    """A row, and the plain loop where there is one; they are timed when ``wait``, called once recorded, returns."""
    source = create("bundled/mini_clip")
    network = source.module.to(options.device)
    assert isinstance(network, ZeroShot)
    row = rows_of(GRID, options.precision, options.quick)[label]
    side, draw = source.preprocessing.size, torch.Generator().manual_seed(0)
    batches = [torch.randn(batch, 3, side, side, generator=draw).to(options.device) for _ in range(options.repeats)]
    adapted = adapt_with(Settings.of({**row, "engine": options.engine}), network)
    for x in batches[: options.warmup]:
        adapted(x)
    if label in PLAIN:
        # All its passes are alike, so that one round of them warms up the others.
        plain_of(network, row, options.precision, rounds=1)(batches[0])
    wait()
    engine = choose_engine(options.engine, torch.device(options.device)).name
    found = [Timing(label, batch, engine, milliseconds(adapted, batches, options.seconds))]
    if label in PLAIN:
        plain = plain_of(network, row, options.precision)
        found.append(Timing(f"plain {label}", batch, "plain loop", milliseconds(plain, batches, options.seconds)))
    return found


def in_a_process(label: str, batch: int, options: argparse.Namespace, line: Connection) -> None:
    """Says when it is recorded, waits until it is told to go on, and says what it has found."""
    if options.device.startswith("cuda"):
        # Many record at once, each with little for its processor to compute.
        torch.set_num_threads(1)

    def wait() -> None:
        line.send("recorded")
        line.recv()

    line.send(timed(label, batch, options, wait))


def measured(labels: Sequence[str], batch: int, options: argparse.Namespace) -> Iterator[list[Timing]]:
    """All rows of a batch size: recorded side by side, each in a process of its own, timed one after the other."""
    spawn = multiprocessing.get_context("spawn")
    lines: dict[str, Connection] = {}
    for label in labels:
        lines[label], theirs = spawn.Pipe()
        spawn.Process(target=in_a_process, args=(label, batch, options, theirs), daemon=True).start()
        theirs.close()
    for recording in (True, False):
        for label, line in list(lines.items()):
            try:
                if not recording:
                    line.send("go on")
                found = line.recv()
            except (EOFError, ConnectionError):
                print(f"batch {batch:>4}  {label}: it ended before it was timed", flush=True)
                del lines[label]
                continue
            if not recording:
                yield found


def measure(options: argparse.Namespace) -> None:
    found: list[Timing] = []
    labels = options.rows or list(rows_of(GRID, options.precision, options.quick))
    for batch in options.batches:
        for own in measured(labels, batch, options):
            found += own
            for one in own:
                calls = f"({len(one.milliseconds)} calls)"
                print(f"batch {batch:>4}  {one.row:<18} {one.median:10.2f} ms  {calls}", flush=True)
            # After every row, so that a run that is stopped leaves what it has.
            write(found, options)


def write(found: Sequence[Timing], options: argparse.Namespace) -> None:
    by_name = {(one.row, one.batch): one for one in found}
    device = torch.cuda.get_device_name(options.device) if options.device.startswith("cuda") else "cpu"
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for one in found:
            plain = by_name.get((f"plain {AGAINST.get(one.row, one.row)}", one.batch))
            faster = f"{plain.median / one.median:.2f}" if plain is not None else ""
            times = (one.median, min(one.milliseconds), max(one.milliseconds))
            shown = [f"{value:.3f}" for value in times]
            table.writerow(
                [one.row, one.batch, device, options.precision, one.engine, *shown, len(one.milliseconds), faster]
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/clip_times.csv"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", help="of polytta and of the plain loop alike; bf16 on a CUDA device, else fp32")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 128])
    parser.add_argument("--rows", nargs="+", help="of the grid; all by default")
    parser.add_argument("--repeats", type=int, default=15, help="most calls of each")
    parser.add_argument("--seconds", type=float, default=10.0, help="after which no more calls of a row are made")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument(
        "--quick", action="store_true", help="a step or two of each, small batches: does it run at all?"
    )
    options = parser.parse_args()
    options.precision = options.precision or ("bf16" if options.device.startswith("cuda") else "fp32")
    if options.quick:
        options.batches, options.repeats, options.warmup = [1, 4], 3, 1
    measure(options)
    print(options.out.resolve())


if __name__ == "__main__":
    main()
