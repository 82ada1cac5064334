"""How far confidence can be trusted: the one calibration error of the laboratory.

    Σ_b (n_b / n) · |accuracy_b - confidence_b|

over equally wide bins of the highest probability (Naeini et al. 2015; Guo et al. 2017, arXiv 1706.04599).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 15


@dataclass(frozen=True)
class Reliability:
    """Mean confidence, share right and number of images in each of 15 equally wide bins of confidence; 0 if empty."""

    confidence: tuple[float, ...]
    accuracy: tuple[float, ...]
    count: tuple[int, ...]


def confidence_bins(confidence: NDArray[np.floating], bins: int = BINS) -> NDArray[np.int64]:
    """(N,) number of the bin that each confidence falls into; 1 belongs to the last."""
    return np.minimum((confidence.astype(np.float64) * bins).astype(np.int64), bins - 1)


def calibration_error(confidence: NDArray[np.floating], correct: NDArray[np.bool_], bins: int = BINS) -> float:
    """Of N images: their highest probabilities, and whether these were of the right class."""
    surplus: NDArray[np.float64] = correct - confidence.astype(np.float64)
    return _mean_distance(np.bincount(confidence_bins(confidence, bins), surplus, bins), len(correct))


def pooled_calibration_error(reliabilities: Sequence[Reliability]) -> float:
    """Over the images of several records, which is not the mean of their errors."""
    counts = np.array([one.count for one in reliabilities], np.float64)
    surplus = np.array([one.accuracy for one in reliabilities]) - np.array([one.confidence for one in reliabilities])
    return _mean_distance((counts * surplus).sum(axis=0), float(counts.sum()))


def _mean_distance(surplus: NDArray[Any], images: float) -> float:
    """A bin's n_b cancels: its part is the absolute sum of (right or not, less confidence) over its images."""
    return float(np.abs(surplus).sum() / images)
