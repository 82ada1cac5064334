"""What the demo found: predictions of every row on every corruption, and the measures taken from them."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polytta.lab.demo.cell import CellResult
from polytta.lab.demo.settings import Row, Settings
from polytta.lab.pages.calibration import calibration_error
from polytta.system.versions import versions

CellKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Segment:
    """One corruption's images in stream order, corrupted and clean, with their labels."""

    name: str
    images: NDArray[np.uint8]
    clean: NDArray[np.uint8]
    labels: NDArray[np.int32]


@dataclass(frozen=True)
class Score:
    """The measures of one row.

    Attributes:
        accuracy: on each corruption.
        mean_accuracy: over the corruptions.
        calibration_error: over all images.
        images_per_second: of processor time, so on one core.
        gain: mean accuracy less that of the source row.
        gain_error: standard error of the gain, from the paired predictions of both rows.
    """

    accuracy: tuple[float, ...]
    mean_accuracy: float
    calibration_error: float
    images_per_second: float
    gain: float
    gain_error: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """Everything the table, the report and the record are made from. The first row is the one gains refer to."""

    settings: Settings
    segments: tuple[Segment, ...]
    results: dict[CellKey, CellResult]
    classes: tuple[str, ...]
    model: dict[str, Any]
    stream: dict[str, Any]
    seconds: float

    def probs(self, row: Row) -> NDArray[np.float32]:
        """(N, C) probabilities over all segments in turn."""
        return np.concatenate([self.results[row.name, segment.name].probs for segment in self.segments])

    def correct(self, row: Row, segment: Segment) -> NDArray[np.bool_]:
        """Which images of a segment the row had right."""
        return np.asarray(self.results[row.name, segment.name].probs.argmax(axis=1) == segment.labels)

    def score(self, row: Row) -> Score:
        """Measures of one row."""
        own = [self.correct(row, segment) for segment in self.segments]
        reference = [self.correct(self.settings.rows[0], segment) for segment in self.segments]
        difference = np.concatenate(own).astype(np.float64) - np.concatenate(reference)
        results = [self.results[row.name, segment.name] for segment in self.segments]
        accuracy = tuple(float(right.mean()) for right in own)
        labels = np.concatenate([segment.labels for segment in self.segments])
        return Score(
            accuracy=accuracy,
            mean_accuracy=float(np.mean(accuracy)),
            calibration_error=calibration_error(self.probs(row), labels),
            images_per_second=len(labels) / sum(result.seconds for result in results),
            gain=float(difference.mean()),
            gain_error=float(difference.std() / np.sqrt(len(difference))),
        )

    def record(self) -> dict[str, Any]:
        """Settings and scores as plain values."""
        settings = self.settings
        return {
            "data": "generated",
            "model": self.model,
            "stream": self.stream,
            "corruptions": list(settings.corruptions),
            "severity": settings.severity,
            "constants": "cifar",
            "seed": settings.seed,
            "learning_rate": settings.learning_rate,
            "rows": {row.name: {**vars(row), **vars(self.score(row))} for row in settings.rows},
            "seconds": round(self.seconds, 1),
            "versions": versions(),
        }
