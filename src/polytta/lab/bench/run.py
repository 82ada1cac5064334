"""From cells to records. Cells that share all but their stream, seed and learning rate run together as one group."""

import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polytta.lab.bench.cell import Cell
from polytta.lab.bench.data import open_cell_stream, prepare
from polytta.lab.bench.plan import Plan, plan_cell, source_model
from polytta.lab.bench.population import Population
from polytta.lab.bench.record import Record, Results, Times
from polytta.lab.bench.tally import Tally
from polytta.lab.bench.trajectory import Trajectory
from polytta.methods.base import entropy
from polytta.models import SourceModel
from polytta.particles import choose_engine
from polytta.stream import Stream
from polytta.system.versions import versions

PACKAGES = ("polytta", "torch", "numpy", "pillow", "torchmetrics")
# Preprocessed images held at once, and predictions held before they are counted.
_FEED_BYTES = 2**26
_HELD_VALUES = 2**22


@dataclass(frozen=True)
class Execution:
    """Where and how cells run; none of it changes what they compute.

    Attributes:
        device: "cpu", "cuda", "cuda:1" ..., or "auto" for a CUDA device if there is one.
        engine: the engine of ``polytta.adapt``.
        fold: whether cells that can share a batch do: "auto" does on a CUDA device, where it pays.
        fold_images: most images in a folded batch, over all cells and particles.
        cache_folder: where corrupted images are kept and shared; None keeps them in memory.
    """

    device: str = "auto"
    engine: str = "auto"
    fold: Literal["auto", "always", "never"] = "auto"
    fold_images: int = 1024
    cache_folder: str | None = None

    @property
    def torch_device(self) -> str:
        """The device as torch names it."""
        if self.device != "auto":
            return self.device
        return "cuda" if torch.cuda.is_available() else "cpu"

    @property
    def folds(self) -> bool:
        """Whether cells share batches."""
        return self.fold == "always" or (self.fold == "auto" and self.torch_device.startswith("cuda"))


def run_cells(
    cells: Sequence[Cell], report_progress: Callable[[int], object] = lambda images: None, how: Execution | None = None
) -> list[Record]:
    """Runs a group of cells; ``report_progress`` is told how many images have gone by since it was last called."""
    return run_group([plan_cell(cell) for cell in cells], report_progress, how or Execution())


def run_group(plans: Sequence[Plan], report_progress: Callable[[int], object], how: Execution) -> list[Record]:
    """Runs planned cells that fit into one group."""
    device = how.torch_device
    _make_current(device)
    streams = [open_cell_stream(plan.cell, how.cache_folder) for plan in plans]
    prepare(streams)
    source = source_model(plans[0].cell, device)
    population = Population(plans, device, how.engine)
    tallies = [Tally(_labels(stream), _groups(stream), source.num_classes) for stream in streams]
    trajectory = Trajectory(sum(1 for _ in streams[0].bounds()), population)
    held: list[tuple[Tensor, Tensor, Tensor]] = []
    most_held = max(1, _HELD_VALUES // (plans[0].cell.batch_size * source.num_classes * len(plans)))
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    _forget_peak_memory(device)
    clock = _Clock(device)
    for x in _batches(streams, source, device, clock):
        log_probs = population.step(x)
        held.append((log_probs, *_spread(population, log_probs)))
        trajectory.after_step(x.shape[1])
        if len(held) == most_held:
            with clock.stopped():
                _count(held, tallies)
        report_progress(x.shape[0] * x.shape[1])
    _count(held, tallies)
    share = clock.seconds / len(plans)
    times = Times(share, plans[0].images / share, _peak_memory_mb(device), started, len(plans))
    environment = _environment(device, population)
    return [
        _record(plan, tally, trajectory, population, number, environment, times)
        for number, (plan, tally) in enumerate(zip(plans, tallies, strict=True))
    ]


def _record(
    plan: Plan,
    tally: Tally,
    trajectory: Trajectory,
    population: Population,
    number: int,
    environment: dict[str, object],
    times: Times,
) -> Record:
    drift = trajectory.drift(number)
    return Record(
        cell=plan.cell,
        pins=plan.pins,
        results=Results(**vars(tally.scores()), **vars(population.counts(number)), drift=drift[-1], images=plan.images),
        curves=tally.curves(trajectory.ends, drift),
        reliability=tally.reliability(),
        disagreement_vs_error=tally.disagreement_vs_error(),
        particles=trajectory.particles(number),
        correct=tally.correct,
        environment=environment,
        times=times,
    )


def _batches(streams: Sequence[Stream], source: SourceModel, device: str, clock: "_Clock") -> Iterator[Tensor]:
    """(G, B, C, H, W) preprocessed batches, the same place of every stream at once; made many at a time."""
    readers = zip(*(stream.batches() for stream in streams), strict=True)
    size = source.preprocessing.size
    per_step = len(streams) * streams[0].spec.batch_size * 3 * size * size * 4
    steps = max(1, _FEED_BYTES // per_step)
    while True:
        with clock.stopped():
            part = list(islice(readers, steps))
            if not part:
                return
            images = [image for batches in part for batch in batches for image in batch.images]
            ready = source.preprocessing(images).to(device)
        start = 0
        for batches in part:
            count = len(batches[0].images)
            if any(len(batch.images) != count for batch in batches):
                raise RuntimeError("streams of one group have batches of different sizes: labels would be mistaken")
            taken = ready[start : start + len(batches) * count]
            yield taken.unflatten(0, (len(batches), count))
            start += len(taken)


def _spread(population: Population, log_probs: Tensor) -> tuple[Tensor, Tensor]:
    """(G, B) mean entropy of the particles, and the share of pairs of particles that predict different classes."""
    logits = population.logits()
    if logits is None or logits.shape[2] != log_probs.shape[1]:  # some images were not usable
        nothing = log_probs.new_zeros(log_probs.shape[:2])
        return nothing, nothing
    answers = logits.argmax(dim=-1)
    pairs = max(1, population.particles * (population.particles - 1))
    different = (answers.unsqueeze(1) != answers.unsqueeze(2)).sum(dim=(1, 2)) / pairs
    return entropy(logits).mean(dim=1), different


def _count(held: list[tuple[Tensor, Tensor, Tensor]], tallies: Sequence[Tally]) -> None:
    """Hands what was held to the tallies, and lets it go."""
    if held:
        log_probs, entropies, differences = (torch.cat(parts, dim=1).float().cpu() for parts in zip(*held, strict=True))
        for number, tally in enumerate(tallies):
            tally.add(log_probs[number], entropies[number], differences[number])
        held.clear()


def _labels(stream: Stream) -> NDArray[np.int64]:
    return _per_image(stream, [dataset.labels for dataset in stream.datasets])


def _groups(stream: Stream) -> NDArray[np.int64] | None:
    groups = [getattr(dataset, "groups", None) for dataset in stream.datasets]
    return None if any(part is None for part in groups) else _per_image(stream, groups)  # type: ignore[arg-type]


def _per_image(stream: Stream, values: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Values of the domains in the order of the stream."""
    taken = np.empty(len(stream), np.int64)
    for number, own in enumerate(values):
        here = stream.order.domain == number
        taken[here] = own[stream.order.item[here]]
    return taken


def _environment(device: str, population: Population) -> dict[str, object]:
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu"
    return {
        **versions(PACKAGES),
        "device": name,
        "engine": choose_engine(population.adapted.config.engine, torch.device(device)).name,
        "threads": torch.get_num_threads(),
    }


def _make_current(device: str) -> None:
    """Lets what takes the current CUDA device (streams, events, Triton kernels) take the one the cell runs on."""
    if torch.device(device).index is not None:
        torch.cuda.set_device(device)


class _Clock:
    """Seconds of prediction and learning; first goes when the first images are there."""

    def __init__(self, device: str) -> None:
        self.seconds = 0.0
        self._device = device
        self._since: float | None = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """While something else is done, once the device has done what it was told before."""
        if self._since is not None:
            self._synchronize()
            self.seconds += time.perf_counter() - self._since
        yield
        self._synchronize()
        self._since = time.perf_counter()

    def _synchronize(self) -> None:
        if self._device.startswith("cuda"):
            torch.cuda.synchronize(self._device)


def _forget_peak_memory(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)


def _peak_memory_mb(device: str) -> float:
    if device.startswith("cuda"):
        return torch.cuda.max_memory_allocated(device) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
