"""What a cell's predictions add up to.

One number per image is kept of each measure, and summed once at the end in double precision: a stream that was counted
in other pieces gives the same sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polytta.data.groups import group_accuracy
from polytta.lab.bench.record import Curves, DisagreementVsError, SelectiveRisk
from polytta.lab.scores import BINS, Reliability, calibration_error, confidence_bins
from polytta.report.measures import selective_risk

_TOP = 5
LAST_ANSWERS = 6
_COVERAGES = 20


@dataclass(frozen=True, eq=False)
class Scores:
    """The measures of one cell that follow from its predictions; see ``record.CellResults``."""

    accuracy: float
    top5: float | None
    per_class: tuple[float | None, ...]
    ece: float
    nll: float
    brier: float
    worst_group: float | None
    entropy: float
    disagreement: float
    last_answers: tuple[int, ...]
    aurc: float


class Tally:
    """Predictions of one stream, taken in as they come."""

    def __init__(self, labels: NDArray[np.int64], groups: NDArray[np.int64] | None, num_classes: int) -> None:
        self.labels, self.groups, self.num_classes = labels, groups, num_classes
        self.seen = 0
        images = len(labels)
        self.correct, self.in_top5 = np.zeros(images, np.bool_), np.zeros(images, np.bool_)
        self.confidence, self.entropy, self.disagreement = (np.zeros(images, np.float32) for _ in range(3))
        self.nll, self.brier = np.zeros(images), np.zeros(images)
        self.answers = np.zeros(images, np.int64)

    def add(self, log_probs: Tensor, entropy: Tensor, disagreement: Tensor) -> None:
        """Takes in the next images: (N, C) log-probabilities, and the particles' entropy and disagreement (N,)."""
        part = slice(self.seen, self.seen + len(log_probs))
        labels, images = self.labels[part], np.arange(len(log_probs))
        values = log_probs.numpy()
        # The mixture of particles that are all sure sums to a little more than 1.
        probs = np.minimum(np.exp(values.astype(np.float64)), 1.0)
        self.answers[part] = values.argmax(axis=1)
        self.correct[part] = self.answers[part] == labels
        self.confidence[part] = probs.max(axis=1)
        self.nll[part] = -values[images, labels].astype(np.float64)
        distances = probs.copy()
        distances[images, labels] -= 1
        self.brier[part] = np.square(distances).sum(axis=1)
        if self.num_classes > _TOP:
            best = log_probs.topk(_TOP, dim=1).indices
            self.in_top5[part] = (best == torch.from_numpy(labels).unsqueeze(1)).any(dim=1).numpy()
        self.entropy[part], self.disagreement[part] = entropy.numpy(), disagreement.numpy()
        self.seen += len(log_probs)

    def scores(self) -> Scores:
        """The measures over all images."""
        count = len(self.labels)
        if self.seen != count:
            raise RuntimeError(f"{self.seen} of {count} images were predicted: a record of them would be wrong")
        present = np.bincount(self.labels, minlength=self.num_classes).tolist()
        hits = np.bincount(self.labels[self.correct], minlength=self.num_classes).tolist()
        groups = None if self.groups is None else group_accuracy(self.correct, self.groups)
        return Scores(
            accuracy=100 * sum(hits) / count,
            top5=100 * int(self.in_top5.sum()) / count if self.num_classes > _TOP else None,
            per_class=tuple(100 * hit / here if here else None for hit, here in zip(hits, present, strict=True)),
            ece=calibration_error(self.confidence, self.correct),
            nll=_mean(self.nll),
            brier=_mean(self.brier),
            worst_group=None if groups is None else 100 * groups.worst_group,
            entropy=_mean(self.entropy),
            disagreement=_mean(self.disagreement),
            last_answers=tuple(self.answers[-LAST_ANSWERS:].tolist()),
            aurc=_mean(self._risk()),
        )

    def curves(
        self, ends: Sequence[int], drift: Sequence[tuple[float, ...]], weights: Sequence[tuple[float, ...]] = ()
    ) -> Curves:
        """Means within the windows that end at these positions."""
        windows = [slice(start, end) for start, end in zip((0, *ends[:-1]), ends, strict=True)]

        def means(values: NDArray[Any], scale: float = 1.0) -> tuple[float, ...]:
            return tuple(scale * _mean(values[window]) for window in windows)

        return Curves(
            tuple(ends),
            means(self.correct, 100),
            means(self.entropy),
            means(self.disagreement),
            tuple(drift),
            tuple(weights),
        )

    def selective_risk(self) -> SelectiveRisk:
        """Share wrong among the most confident answers."""
        risk = self._risk()
        kept = np.unique(np.ceil(np.linspace(0, len(risk), _COVERAGES + 1)[1:]).astype(np.int64))
        return SelectiveRisk(tuple((kept / len(risk)).tolist()), tuple(risk[kept - 1].tolist()))

    def _risk(self) -> NDArray[np.float64]:
        return selective_risk(torch.from_numpy(self.confidence), torch.from_numpy(self.correct)).numpy()

    def reliability(self) -> Reliability:
        """Confidence and accuracy in bins of confidence."""
        return Reliability(*_binned(confidence_bins(self.confidence), BINS, self.confidence, self.correct))

    def disagreement_vs_error(self) -> DisagreementVsError:
        """Share wrong at each level of disagreement."""
        levels, place = np.unique(self.disagreement, return_inverse=True)
        if len(levels) > BINS:
            place = np.minimum((self.disagreement * BINS).astype(np.int64), BINS - 1)
        return DisagreementVsError(*_binned(place, int(place.max()) + 1, self.disagreement, ~self.correct))


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean(dtype=np.float64))


def _binned(
    place: NDArray[np.int64], bins: int, values: NDArray[Any], marks: NDArray[np.bool_]
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[int, ...]]:
    """Mean value, share marked and count of each bin; zeros for an empty one."""
    counts = np.bincount(place, minlength=bins)
    divisor = np.maximum(counts, 1)
    mean, share = np.bincount(place, values, bins) / divisor, np.bincount(place, marks, bins) / divisor
    return tuple(mean.tolist()), tuple(share.tolist()), tuple(counts.tolist())
