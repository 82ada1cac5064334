"""Runs groups of cells on a Ray cluster. Records travel back to this process, so no folder need be shared.

A group whose worker or machine dies is run again elsewhere; Ray does that, as long as the cluster has a worker left.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from polytta.errors import ConfigError
from polytta.lab.bench.execution import Execution
from polytta.lab.bench.groups import CellOutcome, Failure, Group, attempt

_POLL_SECONDS = 0.5
_RETRIES = 5


def run_on_ray(
    groups: Sequence[Group], report: Callable[[int], object], execution: Execution, address: str | None
) -> Iterator[list[CellOutcome]]:
    """One task per group, as many at a time as the cluster has cores (or GPUs, when cells run on CUDA).

    Args:
        groups: what to run.
        report: told how many (particle, image) pairs have gone by since it was last called.
        execution: where and how cells run on a worker.
        address: of a running cluster, "auto" for the one on this machine, None to start one for this run.
    """
    ray = require_ray()
    started_here = not ray.is_initialized()
    if started_here:
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=False if address is None else None)
        except (ConnectionError, ValueError) as error:
            raise ConfigError(
                f"--address: got {address!r}, where none answers ({error}); allowed is a Ray cluster."
            ) from error
    try:
        yield from _outcomes(ray, groups, report, execution)
    finally:
        if started_here:
            ray.shutdown()


def _outcomes(
    ray: Any, groups: Sequence[Group], report: Callable[[int], object], execution: Execution
) -> Iterator[list[CellOutcome]]:
    gpus = 1 if execution.device.startswith("cuda") else 0
    counter = ray.remote(_Counter).options(num_cpus=0, max_restarts=-1).remote()
    task = ray.remote(_run).options(num_cpus=1, num_gpus=gpus, max_retries=_RETRIES)
    running = {task.remote(number, group, execution, counter): group for number, group in enumerate(groups)}
    reported = 0
    while running:
        ready, _ = ray.wait(list(running), timeout=_POLL_SECONDS)
        for reference in ready:
            group = running.pop(reference)
            try:
                yield ray.get(reference)
            except ray.exceptions.RayError as error:
                sentence = f"Ray gave it up after {_RETRIES} retries: {' '.join(str(error).split())}"
                yield [Failure(plan.key, plan.cell, sentence, "") for plan in group]
        total = ray.get(counter.total.remote())
        if total > reported:
            report(total - reported)
            reported = total


def _run(number: int, group: Group, execution: Execution, counter: Any) -> list[CellOutcome]:
    import torch

    torch.set_num_threads(1)
    seen, total = 0, sum(plan.images for plan in group)

    def count(images: int) -> None:
        nonlocal seen
        before, seen = seen, seen + images
        # One message per hundredth of the stream at most: progress must not cost more than it tells.
        if seen * 100 // total != before * 100 // total:
            counter.seen.remote(number, seen * group[0].particles)

    return attempt(group, count, execution)


class _Counter:
    """How far each group has come; a group that is run again starts from 0 and is not counted twice."""

    def __init__(self) -> None:
        self.groups: dict[int, int] = {}

    def seen(self, number: int, pairs: int) -> None:
        self.groups[number] = pairs

    def total(self) -> int:
        return sum(self.groups.values())


def require_ray() -> Any:
    """Ray, or how to install it."""
    if find_spec("ray") is None:
        raise ConfigError("--runner: got 'ray', which is not installed; allowed after pip install 'polytta[ray]'.")
    return import_module("ray")
