"""The batch-size-1 scenario of SAR (arXiv 2302.12400): the order of ``mild``, one image at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from polytta.stream.order import Labels, Order, Reset, shuffled_segments


@dataclass(frozen=True)
class Batch1:
    """Each domain shuffled, a fresh model for each, batches of one image."""

    scenario: ClassVar[str] = "batch1"
    reset: ClassVar[Reset] = "segment"
    batch_size: ClassVar[int] = 1

    seed: int = 2021
    limit: int | None = None

    def order(self, labels: Sequence[Labels]) -> Order:
        """Shuffle each domain on its own."""
        return shuffled_segments(labels, self.seed, self.limit)
