"""Expected calibration error (Naeini et al. 2015; Guo et al. 2017, arXiv 1706.04599)."""

import numpy as np
from numpy.typing import NDArray


def calibration_error(probs: NDArray[np.floating], labels: NDArray[np.integer], bins: int = 15) -> float:
    """Mean distance between confidence and accuracy: Σ_b (n_b / n) · |accuracy_b - confidence_b|.

    Args:
        probs: (N, C) probabilities.
        labels: (N,) classes.
        bins: equally wide bins of the highest probability.
    """
    confidence = probs.max(axis=1).astype(np.float64)
    surplus = (probs.argmax(axis=1) == labels) - confidence
    place = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    # A bin's n_b cancels: its part is the absolute sum of its surpluses over n.
    return float(np.abs(np.bincount(place, surplus, bins)).sum() / len(labels))
