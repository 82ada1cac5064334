"""Runs all rows on all corruptions, one process per core, with one progress bar over all images."""

import multiprocessing
import time
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from polytta import models
from polytta.data.bundled import cifar10_subset_indices, load_cifar10_subset
from polytta.data.corruptions import corrupt
from polytta.data.datasets.base import ArrayImages
from polytta.lab.demo.cell import Cell, CellResult, run_cell
from polytta.lab.demo.outcome import CellKey, Outcome, Segment
from polytta.lab.demo.settings import MODEL, Settings
from polytta.stream import Batch1, Stream, open_stream
from polytta.system.workers import start_worker, usable_cores

_POLL_SECONDS = 0.2


def run_demo(settings: Settings) -> Outcome:
    """Runs the comparison; a progress bar shows on stderr."""
    start = time.perf_counter()
    clean = load_cifar10_subset()
    stream = _corrupted_stream(settings, clean)
    segments = tuple(_segment(stream, clean, number) for number in range(len(settings.corruptions)))
    cells = {
        (row.name, segment.name): Cell(row, segment.images, settings.learning_rate, settings.seed)
        for row in settings.rows
        for segment in segments
    }
    results = _run_cells(cells)
    return Outcome(
        settings=settings,
        segments=segments,
        results=results,
        classes=clean.classes,
        model=models.create(MODEL).facts(),
        stream={**stream.facts(), "sha256": stream.sha256},
        seconds=time.perf_counter() - start,
    )


def _corrupted_stream(settings: Settings, clean: ArrayImages) -> Stream:
    ids = cifar10_subset_indices()
    domains = [
        ArrayImages(
            name=f"{clean.name}/{name}/{settings.severity}",
            classes=clean.classes,
            origin="generated",
            images=corrupt(clean.images, name, settings.severity, constants="cifar", ids=ids, seed=settings.seed),
            labels=clean.labels,
        )
        for name in settings.corruptions
    ]
    return open_stream(Batch1(seed=settings.seed, limit=settings.images), domains)


def _segment(stream: Stream, clean: ArrayImages, number: int) -> Segment:
    items: NDArray[np.int64] = stream.order.item[stream.order.domain == number]
    domain = stream.datasets[number]
    assert isinstance(domain, ArrayImages)
    name = domain.name.split("/")[-2]
    return Segment(name, domain.images[items], clean.images[items], clean.labels[items])


def _run_cells(cells: dict[CellKey, Cell]) -> dict[CellKey, CellResult]:
    # Costly cells first, so that no core ends with a long one while the others have nothing left.
    jobs = sorted(cells.items(), key=lambda item: -item[1].row.particles)
    context = multiprocessing.get_context("spawn")
    seen = context.Value("q", 0)
    total = sum(len(cell.images) for cell in cells.values())
    with (
        tqdm(total=total, unit="image", desc="adapting") as bar,
        ProcessPoolExecutor(min(usable_cores(), len(jobs)), context, _start, (seen,)) as pool,
    ):
        futures = {key: pool.submit(_work, cell) for key, cell in jobs}
        pending = set(futures.values())
        try:
            while pending:
                done, pending = wait(pending, _POLL_SECONDS, FIRST_EXCEPTION)
                bar.update(seen.value - bar.n)
                for future in done:
                    future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return {key: futures[key].result() for key in cells}


_seen: Any = None


def _start(seen: Any) -> None:
    global _seen
    _seen = seen
    start_worker()


def _work(cell: Cell) -> CellResult:
    return run_cell(cell, _count)


def _count() -> None:
    with _seen.get_lock():
        _seen.value += 1
