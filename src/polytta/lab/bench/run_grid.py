"""Runs a grid into a folder: what is finished is left alone, what is missing is run, the tables are made anew."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tqdm import tqdm

from polytta.data.datasets.decode import UnreadableImageError
from polytta.errors import ConfigError, Stopped
from polytta.lab.bench.cell import Cell
from polytta.lab.bench.execution import Execution
from polytta.lab.bench.grid import Grid
from polytta.lab.bench.groups import CellOutcome, Failure, Group, make_groups, work
from polytta.lab.bench.left_out import LeftOut
from polytta.lab.bench.make_data import make_data
from polytta.lab.bench.on_machine import run_on_machine
from polytta.lab.bench.on_ray import require_ray, run_on_ray
from polytta.lab.bench.plan import Plan, plan_cell, source_model
from polytta.lab.bench.record import Record
from polytta.lab.bench.store import Store
from polytta.lab.bench.trackers import JsonLines, Tracker, open_trackers
from polytta.system.workers import usable_cores


@dataclass(frozen=True)
class Options:
    """How a benchmark is run.

    Attributes:
        execution: where and how cells run.
        jobs: processes on this machine; None means one per core, or one on a CUDA device.
        runner: "local", or "ray" for a cluster.
        address: of the Ray cluster; None starts one on this machine.
        trackers: told of every finished cell, besides the folder.
        keep_data: keep corrupted images in the folder, for all processes and for the next run.
        progress: show a bar.
    """

    execution: Execution = field(default_factory=Execution)
    jobs: int | None = None
    runner: Literal["local", "ray"] = "local"
    address: str | None = None
    trackers: tuple[str, ...] = ()
    keep_data: bool = True
    progress: bool = True


@dataclass(frozen=True)
class Summary:
    """What a run of a benchmark did; ``left_out`` has a sentence for every image that could not be read."""

    records: list[Record]
    finished_before: int
    finished_now: int
    failures: list[Failure]
    left_out: list[str] = field(default_factory=list)


def benchmark(grid: Grid, folder: str | Path, options: Options | None = None) -> Summary:
    """Runs what is missing of a grid.

    Args:
        grid: what to run.
        folder: where records lie and go; made if missing.
        options: how to run it.

    Returns:
        All records of the folder, and what this run added.
    """
    options = options or Options()
    if options.jobs is not None and options.jobs < 1:
        raise ConfigError(f"--jobs: got {options.jobs}; allowed is at least 1.")
    if options.runner == "local":
        options.execution.require_device()
    store = Store(folder)
    cells = grid.cells()
    if options.runner == "ray":
        require_ray()
    trackers = open_trackers(options.trackers, store.folder)
    # A model that needs what is not installed or not there is better found before hundreds of cells are planned.
    for cell in {cell.model: cell for cell in cells}.values():
        source_model(cell)
    left_out = LeftOut(store.folder)
    plans = _planned(cells, left_out, options)
    store.open(grid)
    missing = [plan for plan in plans if not store.is_finished(plan)]
    events = JsonLines(store.folder)
    events.started(len(plans), len(plans) - len(missing))
    told: list[Tracker] = [events, *trackers]
    try:
        failures = _run_missing(missing, len(plans), store, told, options)
        while _found_unreadable(failures, left_out, store, options):
            plans = _planned(cells, left_out, options)
            again = [plan for plan in plans if not store.is_finished(plan)]
            failures = _run_missing(again, len(plans), store, told, options)
    except KeyboardInterrupt:
        store.write_tables()
        finished = sum(store.is_finished(plan) for plan in plans)
        raise Stopped(
            f"{finished} of {len(plans)} cells are finished and kept in {store.folder}, and the same command goes on "
            "from there"
        ) from None
    finally:
        for tracker in told:
            tracker.close()
    records = store.write_tables()
    finished_now = len(missing) - len(failures)
    return Summary(records, len(plans) - len(missing), finished_now, failures, left_out.sentences(cells))


def _planned(cells: Sequence[Cell], left_out: LeftOut, options: Options) -> list[Plan]:
    plans: list[Plan] = []
    with tqdm(cells, "planning", unit="cell", leave=False, disable=not options.progress) as bar:
        for cell in bar:
            readable = left_out.applied(cell)
            try:
                plans.append(plan_cell(readable))
            except UnreadableImageError:
                # How large images are is told by the first of them.
                if not left_out.look(readable, progress=options.progress):
                    raise
                plans.append(plan_cell(left_out.applied(cell)))
    return plans


def _found_unreadable(failures: Sequence[Failure], left_out: LeftOut, store: Store, options: Options) -> bool:
    """Whether cells that met a broken image can be run without it."""
    stopped = [failure for failure in failures if failure.is_unreadable_image]
    found = [left_out.look(failure.cell, progress=options.progress) for failure in stopped]
    if any(found):
        for failure in stopped:
            store.forget(failure)
    return any(found)


def _run_missing(
    missing: Sequence[Plan], total: int, store: Store, trackers: Sequence[Tracker], options: Options
) -> list[Failure]:
    execution = options.execution
    if options.keep_data and options.runner == "local":
        execution = replace(execution, cache_folder=str(store.folder / "data"))
        with suppress(UnreadableImageError):  # which every cell that meets it will say
            make_data(missing, str(store.folder / "data"), usable_cores(), progress=options.progress)
    groups = make_groups(missing, execution)
    failures: list[Failure] = []
    finished = total - len(missing)
    with tqdm(total=sum(map(work, groups)), unit="image", unit_scale=True, disable=not options.progress) as bar:
        bar.set_description(f"cell {finished}/{total}")
        for outcomes in _runner(groups, bar.update, execution, options):
            for outcome in outcomes:
                finished += 1
                if isinstance(outcome, Failure):
                    failures.append(outcome)
                    store.fail(outcome)
                else:
                    store.save(outcome)
                for tracker in trackers:
                    _tell(tracker, outcome)
                bar.set_postfix_str(outcome.cell.words)
            bar.set_description(f"cell {finished}/{total}")
    return failures


def _runner(
    groups: Sequence[Group], report: Callable[[int], object], execution: Execution, options: Options
) -> Iterator[list[CellOutcome]]:
    if options.runner == "ray":
        return run_on_ray(groups, report, execution, options.address)
    jobs = options.jobs or (1 if execution.on_gpu else usable_cores())
    return run_on_machine(groups, report, execution, min(jobs, len(groups)))


def _tell(tracker: Tracker, outcome: CellOutcome) -> None:
    if isinstance(outcome, Failure):
        tracker.failed(outcome)
    else:
        tracker.finished(outcome)
