"""Plain figures as a table of a benchmark has them."""

from collections.abc import Mapping
from typing import Any

from tests.lab.bench.records import CELL

from polytta.lab.pages.bench.panel import Entry
from polytta.lab.pages.bench.read import _typed

ACCURACY = {
    ("source", "fog"): (50.0, 52.0),
    ("source", "snow"): (60.0, 60.0),
    ("tent", "fog"): (55.0, 57.0),
    ("tent", "snow"): (50.0, 54.0),
    ("grad", "fog"): (58.0, 60.0),
    ("grad", "snow"): (61.0, 65.0),
}
SETTINGS: dict[str, Mapping[str, Any]] = {
    "source": {"method": "source", "particles": 1},
    "tent": {"method": "tent", "particles": 1},
    "grad": {"method": "deyo", "particles": 3, "diversity": "grad"},
}


def entry(variant: str, corruption: str, seed: int, accuracy: float, **cell: Any) -> Entry:
    plain = {**CELL.flat(), "variant": variant, "corruption": corruption, "seed": seed, **SETTINGS[variant], **cell}
    results = {"accuracy": accuracy, "top5": 90.0, "ece": 0.1, "nll": 1.0, "brier": 0.5}
    times = {"wall_seconds": 2.0, "images_per_second": 20.0}
    key = f"{variant}-{corruption}-{seed}-{sorted(cell.items())}"
    texts = {name: "" if value is None else str(value) for name, value in plain.items()}
    return Entry(key, _typed(texts), results, times)


def entries() -> list[Entry]:
    return [
        entry(variant, corruption, seed, value)
        for (variant, corruption), values in ACCURACY.items()
        for seed, value in enumerate(values)
    ]
