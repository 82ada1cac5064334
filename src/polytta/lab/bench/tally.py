"""What a cell's predictions add up to. Metrics that a library keeps are torchmetrics'."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from polytta.data.groups import group_accuracy
from polytta.errors import ConfigError
from polytta.lab.bench.record import Curves, DisagreementVsError, Reliability
from polytta.models._torchvision_cpu import import_zoo

BINS = 15
_TOP = 5


@dataclass(frozen=True, eq=False)
class Scores:
    """The measures of one cell that follow from its predictions; see ``record.Results``."""

    accuracy: float
    top5: float | None
    per_class: tuple[float | None, ...]
    ece: float
    nll: float
    brier: float
    worst_group: float | None
    entropy: float
    disagreement: float


class Tally:
    """Predictions of one stream, taken in as they come."""

    def __init__(self, labels: NDArray[np.int64], groups: NDArray[np.int64] | None, num_classes: int) -> None:
        classification = torchmetrics()
        self.labels, self.groups, self.num_classes = torch.from_numpy(labels), groups, num_classes
        self.seen = 0
        self.correct = np.zeros(len(labels), np.bool_)
        self.confidence = np.zeros(len(labels), np.float32)
        self.entropy = np.zeros(len(labels), np.float32)
        self.disagreement = np.zeros(len(labels), np.float32)
        self._nll = self._brier = 0.0
        # Counts, not shares: torchmetrics divides in single precision, which leaves 47.999999 for 48.
        self._confusion = classification.MulticlassConfusionMatrix(num_classes)
        self._top5 = None
        if num_classes > _TOP:
            self._top5 = classification.MulticlassStatScores(num_classes, average="micro", top_k=_TOP)
        self._ece = classification.MulticlassCalibrationError(num_classes, n_bins=BINS)

    def add(self, log_probs: Tensor, entropy: Tensor, disagreement: Tensor) -> None:
        """Takes in the next images: (N, C) log-probabilities, and the particles' entropy and disagreement (N,)."""
        part = slice(self.seen, self.seen + len(log_probs))
        # torchmetrics takes all of an update for logits if one probability is above 1, be it by rounding.
        labels, probs = self.labels[part], log_probs.exp().clamp(max=1.0)
        top = probs.max(dim=1)
        self.correct[part] = (top.indices == labels).numpy()
        self.confidence[part] = top.values.numpy()
        self.entropy[part], self.disagreement[part] = entropy.numpy(), disagreement.numpy()
        self._nll += float(F.nll_loss(log_probs.double(), labels, reduction="sum"))
        truth = F.one_hot(labels, self.num_classes)
        self._brier += float((probs.double() - truth).square().sum())
        self._confusion.update(top.indices, labels)
        if self._top5 is not None:
            self._top5.update(probs, labels)
        self._ece.update(probs, labels)
        self.seen += len(log_probs)

    def scores(self) -> Scores:
        """The measures over all images."""
        count = len(self.labels)
        if self.seen != count:
            raise RuntimeError(f"{self.seen} of {count} images were predicted: a record of them would be wrong")
        confusion = self._confusion.compute()
        hits, present = confusion.diagonal().tolist(), confusion.sum(dim=1).tolist()
        groups = None if self.groups is None else group_accuracy(self.correct, self.groups)
        return Scores(
            accuracy=100 * sum(hits) / count,
            top5=None if self._top5 is None else 100 * int(self._top5.compute()[0]) / count,
            per_class=tuple(100 * hit / here if here else None for hit, here in zip(hits, present, strict=True)),
            ece=float(self._ece.compute()),
            nll=self._nll / count,
            brier=self._brier / count,
            worst_group=None if groups is None else 100 * groups.worst_group,
            entropy=float(self.entropy.mean(dtype=np.float64)),
            disagreement=float(self.disagreement.mean(dtype=np.float64)),
        )

    def curves(self, ends: Sequence[int], drift: Sequence[tuple[float, ...]]) -> Curves:
        """Means within the windows that end at these positions."""
        windows = [slice(start, end) for start, end in zip((0, *ends[:-1]), ends, strict=True)]

        def means(values: NDArray[Any], scale: float = 1.0) -> tuple[float, ...]:
            return tuple(scale * float(values[window].mean(dtype=np.float64)) for window in windows)

        return Curves(
            tuple(ends), means(self.correct, 100), means(self.entropy), means(self.disagreement), tuple(drift)
        )

    def reliability(self) -> Reliability:
        """Confidence and accuracy in bins of confidence."""
        place = np.minimum((self.confidence * BINS).astype(np.int64), BINS - 1)
        return Reliability(*_binned(place, BINS, self.confidence, self.correct))

    def disagreement_vs_error(self) -> DisagreementVsError:
        """Share wrong at each level of disagreement."""
        levels, place = np.unique(self.disagreement, return_inverse=True)
        if len(levels) > BINS:
            place = np.minimum((self.disagreement * BINS).astype(np.int64), BINS - 1)
        return DisagreementVsError(*_binned(place, int(place.max()) + 1, self.disagreement, ~self.correct))


def _binned(
    place: NDArray[np.int64], bins: int, values: NDArray[Any], marks: NDArray[np.bool_]
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[int, ...]]:
    """Mean value, share marked and count of each bin; zeros for an empty one."""
    counts = np.bincount(place, minlength=bins)
    divisor = np.maximum(counts, 1)
    mean, share = np.bincount(place, values, bins) / divisor, np.bincount(place, marks, bins) / divisor
    return tuple(mean.tolist()), tuple(share.tolist()), tuple(counts.tolist())


def torchmetrics() -> Any:
    """The library's metrics of classification, or a sentence on how to install it."""
    if importlib.util.find_spec("torchvision") is not None:
        import_zoo("torchvision")  # torchmetrics imports it where it is installed, so it needs the same care
    try:
        from torchmetrics import classification
    except ModuleNotFoundError as error:
        raise ConfigError("polytta bench needs torchmetrics: pip install 'polytta[bench]'.") from error
    return classification
