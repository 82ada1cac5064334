"""Whole benchmarks: stopped, resumed, damaged, failing, in one process and in several."""

import json
import multiprocessing
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.lab.bench.networks import ENOUGH, TINY
from tests.lab.bench.test_run import lasting

from polytta.errors import InputError, PolyttaWarning
from polytta.lab.bench import Execution, Grid, Options, Record, benchmark, read_records
from polytta.lab.bench.on_machine import PRELOAD
from polytta.lab.bench.store import Store

QUIET = Options(jobs=1, progress=False)
GRID = Grid(models=(TINY,), corruptions=("fog", "contrast"), variants=("source", "tent"), images=20, seeds=(0, 1))


def tables(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ("table.csv", "table.parquet")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The benchmark, run without a disturbance."""
    folder = tmp_path_factory.mktemp("whole")
    assert benchmark(GRID, folder, QUIET).finished_now == 8
    return folder


@pytest.mark.long
def test_killed_five_times_it_ends_with_the_same_table(tmp_path: Path) -> None:
    """kill -9 at random moments of a run on the bundled model and images."""
    grid = Grid(corruptions=("fog", "contrast"), variants=("source", "tent"), images=20, seeds=(0, 1))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([PRELOAD])
    moments, kept = random.Random(0), []
    for _ in range(5):
        run = context.Process(target=benchmark, args=(grid, tmp_path / "killed", QUIET))
        run.start()
        before = len(kept)
        # A run that is always killed before its first cell would show nothing: wait for progress, then some more.
        while len(list((tmp_path / "killed" / "cells").glob("*.json"))) <= before and run.is_alive():
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.5))
        run.kill()
        run.join()
        kept = [path.name for path in (tmp_path / "killed" / "cells").glob("*.json")]
    stamps = {name: (tmp_path / "killed" / "cells" / name).stat().st_mtime_ns for name in kept}
    summary = benchmark(grid, tmp_path / "killed", QUIET)
    assert summary.finished_before == len(kept) >= 5
    assert all((tmp_path / "killed" / "cells" / name).stat().st_mtime_ns == stamp for name, stamp in stamps.items())
    benchmark(grid, tmp_path / "whole", QUIET)
    assert tables(tmp_path / "killed") == tables(tmp_path / "whole")


def test_finished_cells_are_left_alone_and_a_larger_grid_adds_to_them(whole: Path, tmp_path: Path) -> None:
    benchmark(replace(GRID, seeds=(1,)), tmp_path, QUIET)
    summary = benchmark(GRID, tmp_path, QUIET)
    assert (summary.finished_before, summary.finished_now) == (4, 4)
    assert tables(tmp_path) == tables(whole)
    assert json.loads((tmp_path / "grid.json").read_text())["seeds"] == [0, 1]
    events = [json.loads(line)["event"] for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert events == 2 * ["started", *4 * ["finished"], "ended"]


def test_processes_and_folding_change_nothing_that_counts(whole: Path, tmp_path: Path) -> None:
    benchmark(GRID, tmp_path / "two", replace(QUIET, jobs=2))
    assert tables(tmp_path / "two") == tables(whole)
    folded = benchmark(GRID, tmp_path / "folded", replace(QUIET, execution=Execution(fold="always"))).records
    apart = read_records(whole)
    assert {record.times.folded_cells for record in folded} == {4}
    assert [record.key for record in folded] == [record.key for record in apart]
    assert [record.results.accuracy for record in folded] == [record.results.accuracy for record in apart]


def test_a_damaged_record_is_set_aside_and_run_again(whole: Path, tmp_path: Path) -> None:
    benchmark(GRID, tmp_path, QUIET)
    victim = sorted((tmp_path / "cells").iterdir())[3]
    before = Record.read(victim)
    victim.write_bytes(victim.read_bytes()[:-100])
    with pytest.warns(PolyttaWarning, match=victim.name):
        summary = benchmark(GRID, tmp_path, QUIET)
    assert (summary.finished_before, summary.finished_now) == (7, 1)
    assert (tmp_path / "damaged" / victim.name).exists()
    assert lasting(Record.read(victim)) == lasting(before)
    assert tables(tmp_path) == tables(whole)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_cell_that_fails_is_told_of_and_costs_no_other(tmp_path: Path, jobs: int) -> None:
    fragile = TINY.replace("tiny", "fragile")
    grid = replace(GRID, models=(fragile, TINY), corruptions=("fog",), seeds=(0,), images=2 * ENOUGH)
    summary = benchmark(grid, tmp_path, replace(QUIET, jobs=jobs, execution=Execution(fold="always")))
    assert [record.cell.model for record in summary.records] == [TINY, TINY]
    assert [failure.cell.model for failure in summary.failures] == [fragile, fragile]
    for failure in summary.failures:
        note = json.loads((tmp_path / "failures" / f"{failure.key}.json").read_text())
        assert "this network fails" in note["sentence"]
        assert "\n" not in note["sentence"]
        assert "ZeroDivisionError" in note["traceback"]
    assert len(benchmark(grid, tmp_path, QUIET).failures) == 2


def test_a_process_that_dies_costs_the_cell_it_was_at(tmp_path: Path) -> None:
    deadly = TINY.replace("tiny", "deadly")
    grid = replace(GRID, models=(deadly, TINY), corruptions=("fog",), variants=("source",), images=2 * ENOUGH)
    summary = benchmark(grid, tmp_path, replace(QUIET, jobs=2))
    assert [record.cell.model for record in summary.records] == [TINY, TINY]
    assert [failure.cell.model for failure in summary.failures] == [deadly, deadly]
    assert "exit code -9" in summary.failures[0].sentence


def test_a_success_takes_back_the_note_of_a_failure(whole: Path, tmp_path: Path) -> None:
    record = read_records(whole)[0]
    store = Store(tmp_path)
    (tmp_path / "failures").mkdir()
    (tmp_path / "failures" / f"{record.key}.json").touch()
    store.save(record)
    assert not list((tmp_path / "failures").iterdir())


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=tmp_path.name):
        read_records(tmp_path)
