"""The measures of the demo's rows, from their records."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polytta.lab.demo.options import SEVERITY
from polytta.lab.demo.run import DemoRun
from polytta.lab.scores import pooled_calibration_error


@dataclass(frozen=True)
class RowScore:
    """The measures of one row.

    Attributes:
        accuracy: on each corruption.
        mean_accuracy: over the corruptions.
        calibration_error: over all images.
        images_per_second: of processor time, so on one core.
        gain: accuracy over all images less that of the first row.
        gain_error: standard error of the gain, from the paired predictions of both rows.
    """

    accuracy: tuple[float, ...]
    mean_accuracy: float
    calibration_error: float
    images_per_second: float
    gain: float
    gain_error: float


def row_score(run: DemoRun, row: str) -> RowScore:
    """Measures of one row."""
    records, reference = run.of_row(row), run.of_row(next(iter(run.options.rows)))
    own, theirs = (np.concatenate([record.correct for record in side]) for side in (records, reference))
    difference = own.astype(np.float64) - theirs
    accuracy = tuple(float(record.correct.mean()) for record in records)
    return RowScore(
        accuracy=accuracy,
        mean_accuracy=float(np.mean(accuracy)),
        calibration_error=pooled_calibration_error([record.reliability for record in records]),
        images_per_second=len(own) / sum(record.times.processor_seconds or 0.0 for record in records),
        gain=float(difference.mean()),
        gain_error=float(difference.std() / np.sqrt(len(difference))),
    )


def plain_scores(run: DemoRun) -> dict[str, Any]:
    """Settings and scores as plain values; the records by their keys."""
    options, first = run.options, run.first
    return {
        "data": first.pins["data_origin"],
        "model": first.pins["model"],
        "streams": {record.cell.corruption: record.pins["stream"] for record in run.of_row(first.cell.variant)},
        "corruptions": list(options.corruptions),
        "severity": SEVERITY,
        "constants": first.pins["data"]["constants"],
        "seed": options.seed,
        "learning_rate": options.subject.learning_rate,
        "rows": {
            row: {**settings, **vars(row_score(run, row)), "records": [record.key for record in run.of_row(row)]}
            for row, settings in options.rows.items()
        },
        "seconds": round(run.seconds, 1),
        "environment": dict(first.environment),
    }
