"""The mixed scenario of SAR (arXiv 2302.12400): all corruptions pooled and shuffled, one run, no reset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polytta.stream.order import Labels, Order, Reset, require_positive


@dataclass(frozen=True)
class Mixed:
    """One shuffle over all domains; ``limit`` keeps the first images of the whole."""

    scenario: ClassVar[str] = "mixed"
    reset: ClassVar[Reset] = "never"

    batch_size: int = 64
    seed: int = 2021
    limit: int | None = None

    def order(self, labels: Sequence[Labels]) -> Order:
        """Shuffle the pool."""
        require_positive("limit", self.limit)
        firsts = np.cumsum([0, *map(len, labels)])
        pooled = np.random.default_rng(self.seed).permutation(int(firsts[-1]))[: self.limit]
        domain = np.searchsorted(firsts, pooled, side="right") - 1
        return Order(domain.astype(np.int32), (pooled - firsts[domain]).astype(np.int64), (0,))
