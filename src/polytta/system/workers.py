"""Runs tasks in this process, or in several of one thread each that never outlive it.

    for done in run_tasks(work, tasks, jobs=4, report=bar.update):
        keep(done.task, done.result())

A worker that dies (killed, out of memory, a crash in compiled code) costs the task it was at, and another takes its
place; the standard pool would be lost with its first worker. Whoever stops taking results, or is interrupted, stops all
workers at once: each is asked to leave, so that it can put away what it was writing, and killed when it does not.
"""

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import forkserver, resource_tracker
from typing import Any, Generic, TypeVar

import torch

from polytta.errors import PolyttaError

T = TypeVar("T")
R = TypeVar("R")

_POLL_SECONDS = 0.2
_LAST_WORDS_SECONDS = 5.0
# Who waits for the end of a program waits no longer than this for all of its workers.
_LEAVING_SECONDS = 2.0
_HELPERS_SECONDS = 0.5


class WorkerDiedError(PolyttaError):
    """The process that ran a task ended before the task was done."""


@dataclass(frozen=True)
class Worker:
    """What a task is told of the process that runs it.

    Attributes:
        number: 0 to one less than the number of jobs.
        report: tells the main process how much was done since it was last called.
    """

    number: int
    report: Callable[[int], object]


@dataclass(frozen=True, eq=False)
class Finished(Generic[T, R]):
    """A task that is over, one way or the other."""

    task: T
    value: R | None = None
    error: Exception | None = None

    def result(self) -> R:
        """What the task returned; raises what it raised, or WorkerDiedError."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


def usable_cores() -> int:
    """Cores this process may use, which in a container can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_tasks(
    work: Callable[[T, Worker], R],
    tasks: Sequence[T],
    jobs: int,
    report: Callable[[int], object] = lambda count: None,
    preload: str | None = None,
) -> Iterator[Finished[T, R]]:
    """Runs every task once; yields each as soon as it is done.

    Args:
        work: does a task; a function of a module (or a ``partial`` of one), since workers have to import it.
        tasks: given out in this order, one at a time to each worker.
        jobs: most processes at a time; 1 runs all tasks in this one.
        report: told, in this process, what the workers' own ``report`` was.
        preload: module that is imported once for all workers, in a process they are forked from. Without it, and where
            forking is not possible, every worker imports for itself. Not for work on a GPU: a forked process cannot use
            CUDA when anything imported before has so much as asked for a device.
    """
    if jobs <= 1 or not tasks:
        return _run_here(work, tasks, report)
    return _run_in_processes(work, tasks, min(jobs, len(tasks)), report, _context(preload))


def _run_here(
    work: Callable[[T, Worker], R], tasks: Sequence[T], report: Callable[[int], object]
) -> Iterator[Finished[T, R]]:
    threads = torch.get_num_threads()
    # One, as in a worker: the number of threads can change the last digits of a result.
    torch.set_num_threads(1)
    try:
        for task in tasks:
            try:
                done = Finished[T, R](task, value=work(task, Worker(0, report)))
            except Exception as error:
                done = Finished(task, error=error)
            yield done
    finally:
        torch.set_num_threads(threads)


def _run_in_processes(
    work: Callable[[T, Worker], R], tasks: Sequence[T], jobs: int, report: Callable[[int], object], context: Any
) -> Iterator[Finished[T, R]]:
    waiting = list(reversed(tasks))
    # Each worker writes its own place and no other, so there is no lock that a killed worker could keep.
    counts = context.RawArray("q", jobs)
    reported = 0
    processes: list[_Process] = []
    try:
        for number in range(jobs):
            with _starting():
                processes.append(_Process(context, work, number, counts))
        while waiting or any(process.is_busy for process in processes):
            for process in processes:
                if waiting and not process.is_busy:
                    process.give(waiting.pop())
            busy = {process.connection: process for process in processes if process.is_busy}
            for ready in multiprocessing.connection.wait(list(busy), _POLL_SECONDS):
                process = busy[ready]
                done: Finished[T, R] = process.take()
                if isinstance(done.error, WorkerDiedError):
                    with _starting():
                        processes[process.number] = _Process(context, work, process.number, counts)
                yield done
            total = sum(counts)
            if total > reported:
                report(total - reported)
                reported = total
    finally:
        for process in processes:
            process.end()
        until = time.monotonic() + _LEAVING_SECONDS
        for process in processes:
            process.join(until)


class _Process:
    """A worker at the other end of a pipe, and the task it is at."""

    def __init__(self, context: Any, work: Callable[[Any, Worker], Any], number: int, counts: Any) -> None:
        self.number = number
        self.is_busy = False
        self._task: Any = None
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, work, number, counts), daemon=True)
        if context.get_start_method() == "forkserver":
            # Starting it takes no time, while starting a worker takes as long as the server imports.
            with _deaf_children():
                forkserver.ensure_running()
            self._process.start()
        else:
            with _deaf_children():
                self._process.start()
        # Ours must be the only other end: then a dead worker is the end of the pipe.
        theirs.close()

    def give(self, task: Any) -> None:
        self._task, self.is_busy = task, True
        with suppress(OSError):  # of a dead worker, which the other direction of the pipe will tell
            self.connection.send(task)

    def take(self) -> Finished[Any, Any]:
        task, self._task, self.is_busy = self._task, None, False
        try:
            value, error, story = self.connection.recv()
        except (EOFError, OSError):
            # It is on its way out; given the time, it says why.
            self._process.join(_LAST_WORDS_SECONDS)
            self.end()
            self.join(time.monotonic() + _LEAVING_SECONDS)
            code = self._process.exitcode
            died = WorkerDiedError(f"the process that ran it ended with exit code {code}, before it was done.")
            return Finished(task, error=died)
        if error is not None:
            error.__cause__ = _RemoteError(f"\n{story}")
        return Finished(task, value, error)

    def end(self) -> None:
        self.connection.close()
        self._process.terminate()

    def join(self, until: float) -> None:
        self._process.join(max(0.0, until - time.monotonic()))
        self._process.kill()
        self._process.join()


def end_helpers() -> None:
    """Ends the processes that Python itself keeps beside workers, which otherwise go when this one has gone.

    For the end of a program, when no worker is left; they cannot be asked to leave while they are still importing.
    """
    _kill_forkserver()
    for helper in (getattr(forkserver, "_forkserver", None), getattr(resource_tracker, "_resource_tracker", None)):
        # Their names are Python's own affair; where they are others, the processes go a moment later.
        stop = getattr(helper, "_stop", None)
        if stop is not None:
            leaving = threading.Thread(target=_quietly, args=(stop,), daemon=True)
            leaving.start()
            leaving.join(_HELPERS_SECONDS)


def _kill_forkserver() -> None:
    pid = getattr(getattr(forkserver, "_forkserver", None), "_forkserver_pid", None)
    if pid is not None:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _quietly(stop: Callable[[], object]) -> None:
    with suppress(OSError):
        stop()


class _RemoteError(Exception):
    """The traceback of an error that was raised in a worker, as its cause."""


def _context(preload: str | None) -> Any:
    if preload is None or "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preload])
    return context


@contextmanager
def _starting() -> Iterator[None]:
    """An interrupt is raised when what is started inside is known, so that it can be ended, and waits for no import."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or (
        threading.current_thread() is not threading.main_thread()
    ):
        yield
        return
    heard: list[int] = []

    def hear(number: int, frame: object) -> None:
        heard.append(number)
        _kill_forkserver()

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    except (EOFError, OSError):  # of a server that was killed
        if not heard:
            raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if heard:
        raise KeyboardInterrupt


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Whatever is started inside never hears of an interrupt, not even while it is still importing."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # It lets interrupts through again whenever it starts, so that must have been before.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Any, work: Callable[[Any, Worker], Any], number: int, counts: Any) -> None:
    _start()

    def count(done: int) -> None:
        counts[number] += done

    worker = Worker(number, count)
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        value, error, story = None, None, ""
        try:
            value = work(task, worker)
        except Exception as raised:
            error, story = _portable(raised), traceback.format_exc()
        connection.send((value, error, story))


def _portable(error: Exception) -> Exception:
    """The error, or its words where another process could not make it again."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _start() -> None:
    """First thing a worker does."""
    # One core each: the processes are the parallelism.
    torch.set_num_threads(1)
    # An interrupt is for the main process, which ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # As an exception, so that files which are half written are taken away on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: int) -> None:
    """Ends this worker when the main process is gone, killed perhaps, and could not do so itself."""
    multiprocessing.connection.wait([sentinel])
    os._exit(1)
