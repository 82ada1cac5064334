"""A real Ray cluster of two workers on this machine, one of which is killed in the middle of the work."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.lab.bench.networks import TINY

from polytta.lab.bench import Grid, Options, benchmark

ray = pytest.importorskip("ray")

pytestmark = [pytest.mark.long, pytest.mark.ray, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where processes that run a cell leave their number."""
    folder = tmp_path / "notes"
    folder.mkdir()
    monkeypatch.setenv("POLYTTA_TEST_NOTES", str(folder))
    return folder


@pytest.fixture
def _cluster(notes: Path) -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    yield
    ray.shutdown()


@pytest.mark.usefixtures("_cluster")
def test_nothing_is_lost_with_a_worker(tmp_path: Path, notes: Path) -> None:
    grid = Grid(models=(TINY.replace("tiny", "noted"),), corruptions=("fog", "contrast"), variants=("source", "tent"))
    grid = replace(grid, seeds=(0, 1), images=100, lrs=(0.01,))
    killed: list[int] = []

    def kill_one() -> None:
        while len(others := [int(path.name) for path in notes.iterdir() if int(path.name) != os.getpid()]) < 2:
            time.sleep(0.01)
        killed.append(others[0])
        os.kill(others[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    summary = benchmark(grid, tmp_path / "ray", Options(runner="ray", progress=False))
    assert len(killed) == 1
    assert summary.failures == []
    assert len(summary.records) == 8
    workers = {int(path.name) for path in notes.iterdir()} - {os.getpid()}
    assert len(workers - set(killed)) >= 2, "another worker took the place of the one that was killed"
    benchmark(grid, tmp_path / "here", Options(jobs=1, progress=False))
    assert (tmp_path / "ray/table.csv").read_bytes() == (tmp_path / "here/table.csv").read_bytes()
