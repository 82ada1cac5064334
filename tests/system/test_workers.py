"""The scheduler: tasks in this process and in several, workers that fail, die, and are stopped."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from polytta.system.workers import Worker, WorkerDiedError, run_tasks

PRELOAD = "polytta.system.workers"


def square(task: int, worker: Worker) -> tuple[int, int, int]:
    """The square, and by whom and with how many threads it was made."""
    worker.report(task)
    return task * task, os.getpid(), torch.get_num_threads()


class PeculiarError(Exception):
    """Cannot be made again from its text alone."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


def fail(task: str, worker: Worker) -> str:
    if task == "raise":
        raise ValueError("what a task raised")
    if task == "peculiar":
        raise PeculiarError(1, 2)
    if task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def note_and_sleep(task: Path, worker: Worker) -> None:
    """Leaves the number of its process, and never ends."""
    (task / str(os.getpid())).touch()
    worker.report(1)
    time.sleep(600)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().split(") ")[1][0] != "Z"


def wait_until(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(("jobs", "preload"), [(1, None), (2, None), (2, PRELOAD)])
def test_every_task_is_done_once_by_one_thread_and_progress_adds_up(jobs: int, preload: str | None) -> None:
    seen: list[int] = []
    threads = torch.get_num_threads()
    done = list(run_tasks(square, range(7), jobs, seen.append, preload))
    assert {one.task: one.result()[0] for one in done} == {number: number**2 for number in range(7)}
    assert (os.getpid() in {one.result()[1] for one in done}) == (jobs == 1)
    assert {one.result()[2] for one in done} == {1}
    assert sum(seen) == sum(range(7))
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_is_raised_where_the_result_is_taken_and_costs_no_other_task(jobs: int) -> None:
    done = {one.task: one for one in run_tasks(fail, ["raise", "peculiar", "a", "b"], jobs, preload=PRELOAD)}
    assert (done["a"].result(), done["b"].result()) == ("a", "b")
    with pytest.raises(ValueError, match="what a task raised") as raised:
        done["raise"].result()
    assert jobs == 1 or "in fail" in str(raised.value.__cause__)
    with pytest.raises(PeculiarError if jobs == 1 else RuntimeError, match="1 and 2"):
        done["peculiar"].result()


def test_a_worker_that_dies_costs_its_task_and_another_takes_its_place() -> None:
    done = {one.task: one for one in run_tasks(fail, ["die", "a", "b", "c"], 2, preload=PRELOAD)}
    assert [done[task].result() for task in "abc"] == ["a", "b", "c"]
    with pytest.raises(WorkerDiedError, match="exit code -9"):
        done["die"].result()


def test_no_worker_is_left_when_the_main_process_is_interrupted(tmp_path: Path) -> None:
    def interrupt(count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        next(run_tasks(note_and_sleep, [tmp_path] * 3, 3, interrupt, PRELOAD))
    workers = [int(path.name) for path in tmp_path.iterdir()]
    assert workers
    assert not any(map(is_alive, workers))


def first_returns(task: Path | None, worker: Worker) -> None:
    if task is not None:
        note_and_sleep(task, worker)


def test_no_worker_is_left_when_results_are_no_longer_wanted(tmp_path: Path) -> None:
    tasks = run_tasks(first_returns, [tmp_path, None], 2, preload=PRELOAD)
    assert next(tasks).task is None
    wait_until(lambda: list(tmp_path.iterdir()))
    tasks.close()  # type: ignore[attr-defined]
    assert not any(is_alive(int(path.name)) for path in tmp_path.iterdir())


ORPHANS = """
import sys
from pathlib import Path
from tests.system.test_workers import PRELOAD, note_and_sleep
from polytta.system.workers import run_tasks

if __name__ == "__main__":
    preload = PRELOAD if sys.argv[2] == "fork" else None
    list(run_tasks(note_and_sleep, [Path(sys.argv[1])] * 2, 2, preload=preload))
"""


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="reads the process table")
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_end_with_a_killed_parent(tmp_path: Path, start: str) -> None:
    script, notes = tmp_path / "run.py", tmp_path / "notes"
    script.write_text(ORPHANS)
    notes.mkdir()
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'src'}"}
    with subprocess.Popen([sys.executable, script, notes, start], env=environment) as process:
        wait_until(lambda: len(list(notes.iterdir())) == 2)
        process.kill()
    workers = [int(path.name) for path in notes.iterdir()]
    wait_until(lambda: not any(map(is_alive, workers)), 20)


def half_writes(task: Path, worker: Worker) -> None:
    """Is writing when it is stopped."""
    unfinished = task / ".unfinished.tmp"
    try:
        unfinished.touch()
        (task / "begun").touch()
        time.sleep(600)
    except BaseException:
        unfinished.unlink()
        raise


def test_a_worker_that_is_stopped_takes_away_what_it_was_writing(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    tasks = run_tasks(one_half_writes, [tmp_path / "one", None], 2, preload=PRELOAD)
    assert next(tasks).task is None
    wait_until(lambda: (tmp_path / "one/begun").exists())
    tasks.close()  # type: ignore[attr-defined]
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["begun"]


def one_half_writes(task: Path | None, worker: Worker) -> None:
    if task is not None:
        half_writes(task, worker)
