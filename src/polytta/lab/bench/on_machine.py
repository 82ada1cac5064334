"""Runs groups of cells on this machine."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch

from polytta.lab.bench.execution import Execution
from polytta.lab.bench.groups import CellOutcome, Failure, Group, attempt
from polytta.system.workers import Worker, WorkerDiedError, run_tasks

PRELOAD = "polytta.lab.bench.preload"


def run_on_machine(
    groups: Sequence[Group], report: Callable[[int], object], execution: Execution, jobs: int
) -> Iterator[list[CellOutcome]]:
    """As many groups at a time as there are jobs; yields what came of each group when it is done.

    Args:
        groups: what to run.
        report: told how many (particle, image) pairs have gone by since it was last called.
        execution: where and how cells run.
        jobs: processes; 1 runs everything in this one.
    """
    preload = None if execution.on_gpu else PRELOAD
    alone: list[Group] = []
    for done in run_tasks(partial(_run, execution=execution), groups, jobs, report, preload):
        try:
            yield done.result()
        except WorkerDiedError as death:
            if len(done.task) > 1:
                # One cell may be to blame; run by itself it costs no other.
                alone += [(plan,) for plan in done.task]
            else:
                yield [Failure(plan.key, plan.cell, str(death), "") for plan in done.task]
    if alone:
        yield from run_on_machine(alone, report, execution, jobs)


def _run(group: Group, worker: Worker, execution: Execution) -> list[CellOutcome]:
    particles = group[0].particles
    return attempt(group, lambda images: worker.report(images * particles), _placed(execution, worker.number))


def _placed(execution: Execution, number: int) -> Execution:
    """Workers take turns over the CUDA devices, and may share one."""
    if execution.torch_device == "cuda" and torch.cuda.device_count() > 1:
        return replace(execution, device=f"cuda:{number % torch.cuda.device_count()}")
    return execution
