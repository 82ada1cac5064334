"""Many settings of the norm parameters at once, measured on the same images without learning anything."""

import re
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

import polytta
from polytta.adapter import Adapted
from polytta.models import SourceModel
from polytta.roles.measures import entropy

# (parameters, image) pairs in one pass; more would only take more memory.
_PAIRS = 512


@dataclass(frozen=True, eq=False)
class Measures:
    """Of P settings of the parameters, each over the same images.

    Attributes:
        entropy: (P,) mean entropy of the predictions in nats: what adaptation lowers.
        loss: (P,) mean cross-entropy with the true labels: what it should lower.
        accuracy: (P,) percent.
    """

    entropy: NDArray[np.float64]
    loss: NDArray[np.float64]
    accuracy: NDArray[np.float64]


def evaluate(
    source: SourceModel, adapted: Adapted, thetas: Tensor, x: Tensor, labels: Tensor, progress: str | None = None
) -> Measures:
    """Measures parameters.

    Args:
        source: the model.
        adapted: any adapter over it; says which layers the parameters are of and what BatchNorm layers use.
        thetas: (P, D) parameters, as ``Adapted.theta`` has them.
        x: (N, ...) preprocessed images.
        labels: (N,) their classes.
        progress: words before a progress bar; None shows none.
    """
    config = adapted.config
    batch = min(len(x), 64 if "batch" in config.statistics else 32)
    at_once = max(1, _PAIRS // batch)
    sums = torch.zeros(3, len(thetas), dtype=torch.float64)
    with tqdm(total=len(thetas), desc=progress, unit="point", disable=progress is None) as bar:
        for start in range(0, len(thetas), at_once):
            part = thetas[start : start + at_once]
            still = polytta.adapt(
                source.module,
                "source",
                particles=len(part),
                targets=[f"^{re.escape(name)}$" for name in config.layers],
                exclude=None,
                statistics=config.statistics[0],
            )
            still.load_state_dict({**still.state_dict(), "theta": part})
            for first in range(0, len(x), batch):
                log_probs = still.particles_log_probs(x[first : first + batch])
                sums[:, start : start + len(part)] += _sums(log_probs, labels[first : first + batch])
            bar.update(len(part))
    means = (sums / len(x)).numpy()
    return Measures(means[0], means[1], 100 * means[2])


def _sums(log_probs: Tensor, labels: Tensor) -> Tensor:
    """(3, P) entropy, cross-entropy and right answers, summed over the images."""
    own = log_probs.gather(-1, labels.expand(len(log_probs), -1).unsqueeze(-1)).squeeze(-1)
    right = log_probs.argmax(dim=-1) == labels
    return torch.stack([entropy(log_probs).sum(dim=1), -own.sum(dim=1), right.sum(dim=1)]).double().cpu()
