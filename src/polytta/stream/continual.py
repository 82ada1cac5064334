"""The continual scenario of CoTTA (arXiv 2203.13591): corruption after corruption, never a reset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from polytta.stream.order import Labels, Order, Reset, shuffled_segments


@dataclass(frozen=True)
class Continual:
    """The order of ``mild`` met by one model that keeps what it has become."""

    scenario: ClassVar[str] = "continual"
    reset: ClassVar[Reset] = "never"

    batch_size: int = 64
    seed: int = 2021
    limit: int | None = None

    def order(self, labels: Sequence[Labels]) -> Order:
        """Shuffle each domain on its own."""
        return shuffled_segments(labels, self.seed, self.limit)
