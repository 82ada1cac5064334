"""One row on one corruption: a fresh model predicts and adapts, image by image."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import polytta
from polytta import models
from polytta.lab.demo.settings import MODEL, Row


@dataclass(frozen=True, eq=False)
class Cell:
    """What a worker needs: the row and the images of one corruption in stream order."""

    row: Row
    images: NDArray[np.uint8]
    learning_rate: float
    seed: int


@dataclass(frozen=True, eq=False)
class CellResult:
    """(N, C) probabilities before each image was learnt from, and the processor time it all took."""

    probs: NDArray[np.float32]
    seconds: float


def run_cell(cell: Cell, seen: Callable[[], object]) -> CellResult:
    """Runs the stream; ``seen`` is called after each image."""
    source = models.create(MODEL)
    row = cell.row
    adapted = polytta.adapt(
        source.module,
        row.method,
        particles=row.particles,
        diversity=row.diversity,
        lenses=row.lenses,
        aggregate=row.aggregate,
        lr=cell.learning_rate,
        seed=cell.seed,
    )
    probs = np.empty((len(cell.images), source.num_classes), np.float32)
    # Processor time: a worker uses one core, and what else the machine is doing then costs no row anything.
    start = time.process_time()
    for position, image in enumerate(cell.images):
        probs[position] = adapted(source.preprocessing([image]))[0].exp().numpy()
        seen()
    return CellResult(probs, time.process_time() - start)
