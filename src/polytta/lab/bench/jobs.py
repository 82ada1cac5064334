"""Runs groups of cells on this machine: in this process, or in several that never outlive it.

A worker that dies (killed, out of memory, a crash in compiled code) costs the group it was at, which is reported as
failed; another takes its place. The standard pool would be lost with its first worker.
"""

import multiprocessing
import multiprocessing.connection
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from polytta.lab.bench.groups import Failure, Group, Outcome, attempt
from polytta.lab.bench.run import Execution
from polytta.system.workers import start_worker

_POLL_SECONDS = 0.2


def run_here(groups: Sequence[Group], report: Callable[[int], object], how: Execution) -> Iterator[list[Outcome]]:
    """One group after the other in this process."""
    threads = torch.get_num_threads()
    # One, as in a worker: the number of threads can change the last digits of a result.
    torch.set_num_threads(1)
    try:
        for group in groups:
            particles = group[0].cell.particles
            yield attempt(group, partial(_scaled, report, particles), how)
    finally:
        torch.set_num_threads(threads)


def _scaled(report: Callable[[int], object], particles: int, images: int) -> None:
    report(images * particles)


def worker_context(how: Execution) -> Any:
    """How workers start: fresh, like every process here, but from one that has imported what they need, if possible.

    Not on a GPU: a forked process cannot use CUDA when anything imported before has so much as asked for a device.
    """
    on_gpu = how.torch_device.startswith("cuda")
    if on_gpu or "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["polytta.lab.bench.imported"])
    return context


def run_in_processes(
    groups: Sequence[Group], report: Callable[[int], object], how: Execution, jobs: int
) -> Iterator[list[Outcome]]:
    """Several groups at a time, each in a process; yields what came of each group when it is done."""
    waiting = deque(groups)
    context = worker_context(how)
    # Each worker writes its own place and no other, so there is no lock that a killed worker could keep.
    done = context.RawArray("q", jobs)
    reported = 0
    workers = [_Worker(context, number, done, how) for number in range(min(jobs, len(waiting)))]
    try:
        while waiting or any(worker.group for worker in workers):
            for worker in workers:
                if worker.group is None and waiting:
                    worker.give(waiting.popleft())
            busy = {worker.connection: worker for worker in workers if worker.group is not None}
            for ready in multiprocessing.connection.wait(list(busy), _POLL_SECONDS):
                worker = busy[ready]
                try:
                    yield worker.take()
                except (EOFError, OSError):
                    group = worker.bury()
                    if len(group) > 1:
                        waiting.extend((plan,) for plan in group)
                    else:
                        yield [_died(group, worker.process.exitcode)]
                    workers[worker.number] = _Worker(context, worker.number, done, how)
            if sum(done) > reported:
                report(sum(done) - reported)
                reported = sum(done)
    finally:
        for worker in workers:
            worker.stop()


@dataclass
class _Worker:
    """A process at the other end of a pipe, and the group it is at."""

    context: Any
    number: int
    done: Any
    how: Execution

    def __post_init__(self) -> None:
        self.group: Group | None = None
        self.connection, theirs = self.context.Pipe()
        arguments = (theirs, self.done, self.number, _device_of(self.number, self.how))
        self.process = self.context.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()
        # Ours must be the only other end: then a dead worker is the end of the pipe.
        theirs.close()

    def give(self, group: Group) -> None:
        self.group = group
        with suppress(OSError):  # of a dead worker, which the other direction of the pipe will tell
            self.connection.send(group)

    def take(self) -> list[Outcome]:
        outcomes: list[Outcome] = self.connection.recv()
        self.group = None
        return outcomes

    def bury(self) -> Group:
        group, self.group = self.group, None
        self.stop()
        assert group is not None
        return group

    def stop(self) -> None:
        self.connection.close()
        if self.group is not None:
            self.process.terminate()
        self.process.join()


def _serve(connection: Any, done: Any, number: int, how: Execution) -> None:
    start_worker()
    while True:
        try:
            group: Group = connection.recv()
        except EOFError:
            return
        particles = group[0].cell.particles

        def count(images: int, each: int = particles) -> None:
            done[number] += images * each

        connection.send(attempt(group, count, how))


def _device_of(number: int, how: Execution) -> Execution:
    """Workers take turns over the CUDA devices, and may share one."""
    if how.torch_device == "cuda" and torch.cuda.device_count() > 1:
        return replace(how, device=f"cuda:{number % torch.cuda.device_count()}")
    return how


def _died(group: Group, exit_code: int | None) -> Failure:
    sentence = f"the process that ran it ended with exit code {exit_code}, before it was done."
    return Failure(group[0].key, group[0].cell, sentence, "")
