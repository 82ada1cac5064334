"""The mild scenario: one shuffled corruption after the other, in batches of 64, a fresh model for each.

This is the ``normal`` setting of SAR (Niu et al. 2023, arXiv 2302.12400).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from polytta.stream.order import Labels, Order, Reset, shuffled_segments


@dataclass(frozen=True)
class Mild:
    """Each domain shuffled; ``limit`` keeps the first images of each shuffled domain."""

    scenario: ClassVar[str] = "mild"
    reset: ClassVar[Reset] = "segment"

    batch_size: int = 64
    seed: int = 2021
    limit: int | None = None

    def order(self, labels: Sequence[Labels]) -> Order:
        """Shuffle each domain on its own."""
        return shuffled_segments(labels, self.seed, self.limit)
