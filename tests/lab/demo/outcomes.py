"""A demo's outcome without the demo: random predictions on random images."""

import numpy as np

from polytta.lab.demo.cell import CellResult
from polytta.lab.demo.outcome import Outcome, Segment
from polytta.lab.demo.settings import ROWS, Settings


def random_outcome(images: int, seed: int = 0) -> Outcome:
    rng = np.random.default_rng(seed)
    settings = Settings(images=images, seed=seed)
    shape = (images, 32, 32, 3)
    segments = tuple(
        Segment(
            name,
            rng.integers(0, 256, shape, dtype=np.uint8),
            rng.integers(0, 256, shape, dtype=np.uint8),
            rng.integers(0, 10, images, dtype=np.int32),
        )
        for name in settings.corruptions
    )
    return Outcome(
        settings=settings,
        segments=segments,
        results={
            (row.name, segment.name): CellResult(rng.dirichlet(np.ones(10), images).astype(np.float32), 2.0)
            for row in ROWS
            for segment in segments
        },
        classes=tuple(f"class {number}" for number in range(10)),
        model={"id": "bundled/none", "weights_sha256": "0" * 64},
        stream={"scenario": "batch1", "sha256": "1" * 64, "domains": [{"name": "random/x/3"}]},
        seconds=1.0,
    )
