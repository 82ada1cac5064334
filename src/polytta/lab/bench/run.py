"""From cells to records. Cells that share all but their stream, seed and learning rate run together as one group."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polytta.lab.bench.costs import Clock, forget_peak_memory, peak_memory_mb
from polytta.lab.bench.data import open_cell_stream, prepare
from polytta.lab.bench.execution import Execution
from polytta.lab.bench.feed import batches
from polytta.lab.bench.plan import Plan, source_model
from polytta.lab.bench.population import Population
from polytta.lab.bench.record import CellResults, Record, Times
from polytta.lab.bench.tally import Tally
from polytta.lab.bench.trajectory import Trajectory
from polytta.particles import choose_engine
from polytta.roles.measures import disagreement, entropy
from polytta.stream import Stream
from polytta.system.versions import versions

PACKAGES = ("polytta", "torch", "numpy", "pillow")
# torch's own defaults; a row with precision tf32 or bf16 goes beyond them.
ARITHMETIC = "products in full, convolutions on CUDA in TF32"
# Predictions held before they are counted.
_HELD_VALUES = 2**22


def run_group(plans: Sequence[Plan], report: Callable[[int], object], execution: Execution) -> list[Record]:
    """Runs planned cells that fit into one group; ``report`` is told how many images have gone by since it last was."""
    with _fixed_arithmetic():
        return _run_group(plans, report, execution)


def _run_group(plans: Sequence[Plan], report: Callable[[int], object], execution: Execution) -> list[Record]:
    device = execution.torch_device
    _make_current(device)
    streams = [open_cell_stream(plan.cell, execution.cache_folder) for plan in plans]
    prepare(streams)
    source = source_model(plans[0].cell, device)
    population = Population(plans, device, execution.engine)
    tallies = [Tally(_labels(stream), _groups(stream), source.num_classes) for stream in streams]
    trajectory = Trajectory(sum(1 for _ in streams[0].bounds()), population)
    held: list[tuple[Tensor, Tensor, Tensor]] = []
    most_held = max(1, _HELD_VALUES // (plans[0].cell.batch_size * source.num_classes * len(plans)))
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    forget_peak_memory(device)
    clock = Clock(device)
    for x in batches(streams, source, device, clock):
        log_probs = population.step(x)
        held.append((log_probs, *_spread(population, log_probs)))
        trajectory.after_step(x.shape[1])
        if len(held) == most_held:
            with clock.stopped():
                _count(held, tallies)
        report(x.shape[0] * x.shape[1])
    _count(held, tallies)
    share = clock.seconds / len(plans)
    times = Times(
        wall_seconds=share,
        images_per_second=plans[0].images / share,
        peak_memory_mb=peak_memory_mb(device),
        started=started,
        folded_cells=len(plans),
        processor_seconds=clock.processor_seconds / len(plans),
    )
    environment = _environment(device, population)
    return [
        _record(plan, stream, tally, trajectory, population, number, environment, times)
        for number, (plan, stream, tally) in enumerate(zip(plans, streams, tallies, strict=True))
    ]


def _record(
    plan: Plan,
    stream: Stream,
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
        results=CellResults(
            **vars(tally.scores()),
            **vars(population.counts(number)),
            drift=drift[-1],
            images=plan.images,
            per_corruption=_per_corruption(stream, tally),
        ),
        curves=tally.curves(trajectory.ends, drift, trajectory.weights(number)),
        reliability=tally.reliability(),
        disagreement_vs_error=tally.disagreement_vs_error(),
        particles=trajectory.particles(number),
        selective_risk=tally.selective_risk(),
        correct=tally.correct,
        environment=environment,
        times=times,
    )


def _spread(population: Population, log_probs: Tensor) -> tuple[Tensor, Tensor]:
    """(G, B) mean entropy of the particles, and the share of pairs of particles that predict different classes."""
    logits = population.logits()
    if logits is None or logits.shape[2] != log_probs.shape[1]:  # some images were not usable
        nothing = log_probs.new_zeros(log_probs.shape[:2])
        return nothing, nothing
    return entropy(logits).mean(dim=1), disagreement(logits)


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


def _per_corruption(stream: Stream, tally: Tally) -> tuple[float, ...]:
    if len(stream.datasets) == 1:
        return ()
    seen = np.bincount(stream.order.domain, minlength=len(stream.datasets))
    right = np.bincount(stream.order.domain, tally.correct, minlength=len(stream.datasets))
    return tuple((100 * right / np.maximum(seen, 1)).tolist())


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
        "engine": choose_engine(population.adapted.settings.engine, torch.device(device)).name,
        "threads": torch.get_num_threads(),
        "float32": ARITHMETIC,
    }


@contextmanager
def _fixed_arithmetic() -> Iterator[None]:
    """Whatever a program or its surroundings chose before, float32 means the same in every cell."""
    try:
        products, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    except RuntimeError:  # set through torch's newer switches, which the older ones then refuse to speak for
        yield
        return
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = True
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(products)
        torch.backends.cudnn.allow_tf32 = convolutions


def _make_current(device: str) -> None:
    """Lets what takes the current CUDA device (streams, events, Triton kernels) take the one the cell runs on."""
    if torch.device(device).index is not None:
        torch.cuda.set_device(device)
