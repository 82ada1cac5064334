"""How far confidence can be trusted: the one calibration error of the laboratory.

Naeini et al. 2015; Guo et al. 2017, arXiv 1706.04599.
"""

import numpy as np
from numpy.typing import NDArray

BINS = 15


def confidence_bins(confidence: NDArray[np.floating], bins: int = BINS) -> NDArray[np.int64]:
    """(N,) number of the equally wide bin that each confidence falls into; 1 belongs to the last."""
    return np.minimum((confidence.astype(np.float64) * bins).astype(np.int64), bins - 1)


def calibration_error(confidence: NDArray[np.floating], correct: NDArray[np.bool_], bins: int = BINS) -> float:
    """Mean distance between confidence and accuracy: Σ_b (n_b / n) · |accuracy_b - confidence_b|.

    Args:
        confidence: (N,) highest probability of each image.
        correct: (N,) whether its class was the right one.
        bins: equally wide bins of the confidence.
    """
    surplus = correct - confidence.astype(np.float64)
    # A bin's n_b cancels: its part is the absolute sum of its surpluses over n.
    return float(np.abs(np.bincount(confidence_bins(confidence, bins), surplus, bins)).sum() / len(correct))
