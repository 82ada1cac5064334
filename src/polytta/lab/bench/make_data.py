"""Makes the corrupted images of a benchmark before its cells run, every core at another corruption.

A GPU would wait for one core that corrupts, and several processes would make the same file at once.
"""

from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from polytta.lab.bench.cell import Cell
from polytta.lab.bench.corrupted_images import CorruptedImages
from polytta.lab.bench.data import open_cell_stream
from polytta.lab.bench.on_machine import PRELOAD
from polytta.lab.bench.plan import Plan
from polytta.system.workers import Worker, run_tasks

Job = tuple[Cell, int, str]


def make_data(plans: Sequence[Plan], folder: str, jobs: int, *, progress: bool) -> None:
    """Writes what is missing of the images that most of a dataset is needed of; the rest is made when it is met."""
    missing: dict[Path, Job] = {}
    for plan in plans:
        stream = open_cell_stream(plan.cell, folder)
        for number, domain in enumerate(stream.datasets):
            needed = 2 * int((stream.order.domain == number).sum()) > len(domain)
            if isinstance(domain, CorruptedImages) and needed and domain.cache_file and not domain.is_kept:
                missing.setdefault(domain.cache_file, (plan.cell, number, folder))
    tasks = list(missing.values())
    if len(tasks) < 2:
        return
    with tqdm(total=len(tasks), desc="corrupting", unit="set", leave=False, disable=not progress) as bar:
        for done in run_tasks(_make, tasks, min(jobs, len(tasks)), preload=PRELOAD):
            done.result()
            bar.update(1)


def _make(job: Job, worker: Worker) -> None:
    cell, number, folder = job
    domain = open_cell_stream(cell, folder).datasets[number]
    assert isinstance(domain, CorruptedImages)
    domain.write()
