r"""Equal weights: p = 1/K Σ pᵢ (an equally weighted mixture), or p ∝ exp(1/K Σ zᵢ) over logits (a geometric mean)."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import ClassVar

from torch import Tensor

from polytta.aggregate.base import Aggregate


@dataclass(frozen=True)
class MeanProbs(Aggregate):
    """log of the particles' mean probability."""

    name: ClassVar[str] = "probs"

    def combine(self, logits: Tensor, evidence: Mapping[str, Tensor], fineness: Tensor) -> Tensor:
        """log 1/K Σ pᵢ."""
        return logits.log_softmax(dim=-1).logsumexp(dim=-3) - log(logits.shape[-3])


@dataclass(frozen=True)
class MeanLogits(Aggregate):
    """log-softmax of the particles' mean logits: sharper where particles agree."""

    name: ClassVar[str] = "logits"

    def combine(self, logits: Tensor, evidence: Mapping[str, Tensor], fineness: Tensor) -> Tensor:
        """log softmax 1/K Σ zᵢ."""
        return logits.mean(dim=-3).log_softmax(dim=-1)
