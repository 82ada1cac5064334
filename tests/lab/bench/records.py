"""Records without a run: random results, filled in as a run would fill them."""

from dataclasses import replace
from typing import Any

import numpy as np

from polytta.lab.bench.cell import Cell
from polytta.lab.bench.record import (
    CellResults,
    Curves,
    DisagreementVsError,
    Particles,
    Record,
    SelectiveRisk,
    Times,
)
from polytta.lab.scores import Reliability

CELL = Cell(
    model="bundled/cifar10_resnet_gn",
    dataset="bundled",
    corruption="fog",
    severity=5,
    scenario="batch1",
    batch_size=1,
    images=40,
    variant="naive",
    settings={"method": "deyo", "particles": 3},
)
PINS: dict[str, Any] = {
    "model": {"id": CELL.model, "preprocessing": {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}},
    "stream": {"sha256": "0" * 64, "images": 40},
    "settings": {"lr": [1e-3, 1.2e-3, 1.4e-3], "particles": 3},
    "protocol": "test",
    "data_origin": "generated",
}


def random_record(seed: int = 0, accuracy: float = 0.7, pins: dict[str, Any] = PINS, **cell: Any) -> Record:
    rng = np.random.default_rng(seed)
    images, particles = 40, 3
    correct = rng.random(images) < accuracy
    triple = tuple(rng.random(particles).tolist())
    return Record(
        cell=replace(CELL, **cell),
        pins=pins,
        results=CellResults(
            accuracy=100 * float(correct.mean()),
            top5=99.0,
            per_class=(70.0, None, *triple),
            ece=0.1,
            nll=float(rng.random()),
            brier=0.3,
            worst_group=None,
            entropy=0.4,
            disagreement=0.05,
            drift=triple,
            selected={"entropy": (3, 4, 5)},
            stepped=(3, 4, 5),
            resets=(0, 0, 0),
            forward_samples=120,
            backward_samples=12,
            images=images,
            last_answers=(3, 1, 4, 1, 5, 9),
        ),
        curves=Curves((20, 40), (60.0, 80.0), (0.5, 0.3), (0.1, 0.0), (triple, triple)),
        reliability=Reliability((0.5,), (0.7,), (images,)),
        disagreement_vs_error=DisagreementVsError((0.0,), (0.3,), (images,)),
        particles=Particles((((0.0, 0.0),) * particles,), (triple,) * particles, None),
        selective_risk=SelectiveRisk((0.5, 1.0), (0.1, float(1 - correct.mean()))),
        correct=correct,
        environment={"torch": "2"},
        times=Times(1.5, 26.7, 512.0, "2030-01-01T00:00:00+00:00"),
    )
