"""Processes that want the same folder take turns."""

import multiprocessing as mp
import os
import signal
import time
from pathlib import Path

import pytest

from polytta.system.alone import alone_at


def _work(folder: Path, log: Path, number: int, seconds: float) -> None:
    with alone_at(folder, lambda: _note(log, f"waits {number}")):
        _note(log, f"in {number}")
        time.sleep(seconds)
        _note(log, f"out {number}")


def _note(log: Path, line: str) -> None:
    with log.open("a") as stream:
        stream.write(line + "\n")


@pytest.fixture
def context() -> mp.context.BaseContext:
    return mp.get_context("spawn")


def test_two_take_turns_and_leave_no_trace(tmp_path: Path, context: mp.context.BaseContext) -> None:
    folder, log = tmp_path / "folder", tmp_path / "log"
    folder.mkdir()
    processes = [context.Process(target=_work, args=(folder, log, number, 0.3)) for number in (1, 2)]  # type: ignore[attr-defined]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    lines = [line for line in log.read_text().splitlines() if not line.startswith("waits")]
    assert lines in (["in 1", "out 1", "in 2", "out 2"], ["in 2", "out 2", "in 1", "out 1"])
    assert list(folder.iterdir()) == []


def test_who_dies_is_not_waited_for(tmp_path: Path, context: mp.context.BaseContext) -> None:
    log = tmp_path / "log"
    process = context.Process(target=_work, args=(tmp_path, log, 1, 60.0))  # type: ignore[attr-defined]
    process.start()
    while not log.exists():
        time.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    waited: list[int] = []
    with alone_at(tmp_path, lambda: waited.append(1)):
        pass
    assert waited == []
