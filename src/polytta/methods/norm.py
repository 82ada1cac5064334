r"""Batch-statistics normalization: x̂ = (x - μ_batch) / σ_batch in every BatchNorm layer, no gradient.

Nado et al. 2020 and Schneider et al. 2020. Identical to the source for models without BatchNorm.
"""

from dataclasses import dataclass
from typing import ClassVar

from polytta.methods.source import Source


@dataclass(frozen=True)
class Norm(Source):
    """Predicts with the statistics of the current batch."""

    name: ClassVar[str] = "norm"
    statistics: ClassVar[str] = "batch"
