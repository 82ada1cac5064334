"""A demo's run without running it: the cells it would run, and random answers."""

from dataclasses import replace

import numpy as np
from tests.lab.bench.records import random_record

from polytta.lab.bench.plan import plan_cell
from polytta.lab.bench.record import Curves, Times
from polytta.lab.bench.tally import LAST_ANSWERS
from polytta.lab.demo.options import DemoOptions
from polytta.lab.demo.run import DemoRun
from polytta.lab.scores import Reliability

SECONDS = 2.0


def random_run(images: int, seed: int = 0) -> DemoRun:
    rng = np.random.default_rng(seed)
    options = DemoOptions(images=images)
    records = {}
    for cell in options.grid().cells():
        record = random_record(seed)
        correct = rng.random(images) < 0.7
        answers = tuple(rng.integers(0, 10, min(images, LAST_ANSWERS)).tolist())
        records[cell.variant, cell.corruptions[0]] = replace(
            record,
            cell=cell,
            pins=plan_cell(cell).pins,
            results=replace(record.results, images=images, last_answers=answers),
            curves=Curves((images,), (70.0,), (0.5,), (0.1,), (record.results.drift,)),
            reliability=Reliability((0.4, 0.9), (0.5, 0.8), (images // 2, images - images // 2)),
            correct=correct,
            times=Times(9.0, images / 9.0, 512.0, "2030-01-01T00:00:00+00:00", processor_seconds=SECONDS),
        )
    return DemoRun(options, records, seconds=1.0)
