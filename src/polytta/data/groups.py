"""Accuracy over groups, for data with a spurious attribute (Sagawa et al. 2020, arXiv 1911.08731)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polytta.errors import InputError


@dataclass(frozen=True)
class GroupAccuracy:
    """Plain accuracy, unweighted mean over the groups present, the worst group, and every group."""

    plain: float
    group_mean: float
    worst_group: float
    per_group: dict[int, float]


def group_accuracy(correct: ArrayLike, groups: ArrayLike) -> GroupAccuracy:
    """Summarise hits and misses by group.

    Args:
        correct: One truth value per image.
        groups: One group number per image.
    """
    hits: NDArray[np.bool_] = np.asarray(correct, dtype=bool)
    numbers = np.asarray(groups)
    if hits.ndim != 1 or hits.shape != numbers.shape or not len(hits):
        raise InputError(
            f"correct, groups: got shapes {hits.shape} and {numbers.shape}; allowed are equally long lists of at least "
            "one image."
        )
    per_group = {int(g): float(hits[numbers == g].mean()) for g in np.unique(numbers)}
    values = list(per_group.values())
    return GroupAccuracy(float(hits.mean()), float(np.mean(values)), min(values), per_group)
