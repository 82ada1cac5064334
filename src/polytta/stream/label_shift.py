"""The label-shift scenario of SAR (Niu et al. 2023, arXiv 2302.12400), draw for draw.

The classes come one after the other in a shuffled order. While a class has its turn, each of its
``draws_per_class`` images is of that class with probability r / (r + C - 1) and of each other class with
probability 1 / (r + C - 1); the image is then drawn with replacement from those of its class. r = 500,000
with 1,000 classes gives 0.998, infinity gives 1.

``seed`` shuffles the classes and nothing else: the published index files share one inner seed, 2022, for all
draws. The generators are Python's and NumPy's legacy ones, called in the order of the published script.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from polytta.errors import InputError
from polytta.stream.order import Labels, Order, Reset, require_positive

DRAW_SEED = 2022


@dataclass(frozen=True)
class LabelShift:
    """Classes in turn, each domain in the same order, a fresh model for each domain.

    Attributes:
        ratio: Odds r of the class whose turn it is against any other single class, 1 to infinity.
        draws_per_class: Images per turn.
    """

    scenario: ClassVar[str] = "label_shift"
    reset: ClassVar[Reset] = "segment"

    batch_size: int = 64
    seed: int = 2021
    ratio: float = 500_000.0
    draws_per_class: int = 100

    def order(self, labels: Sequence[Labels]) -> Order:
        """Draw each domain's images."""
        require_positive("draws_per_class", self.draws_per_class)
        if not self.ratio >= 1:
            raise InputError(f"ratio: got {self.ratio}; allowed is 1 to infinity.")
        items = [self._draw(y) for y in labels]
        sizes = [len(part) for part in items]
        domain = np.repeat(np.arange(len(items), dtype=np.int32), sizes)
        starts = tuple(int(s) for s in np.cumsum([0, *sizes[:-1]]))
        return Order(domain, np.concatenate(items), starts)

    def _draw(self, labels: Labels) -> NDArray[np.int64]:
        present = np.unique(labels)
        count = len(present)
        turns = list(range(count))
        random.Random(self.seed).shuffle(turns)
        generator = np.random.RandomState(DRAW_SEED)
        uniform = generator.random_sample((count, self.draws_per_class))
        minor = 0.0 if math.isinf(self.ratio) else 1 / (self.ratio + count - 1)
        major = 1.0 if math.isinf(self.ratio) else minor * self.ratio
        drawn = np.empty((count, self.draws_per_class), np.int64)
        for turn, leader in enumerate(turns):
            odds = np.full(count, minor)
            odds[leader] = major
            cumulative = odds.cumsum()
            drawn[turn] = (cumulative / cumulative[-1]).searchsorted(uniform[turn], side="right")
        flat = drawn.ravel()
        items = np.empty(len(flat), np.int64)
        for number, label in enumerate(present):
            places = np.flatnonzero(flat == number)
            members = np.flatnonzero(labels == label)
            if len(places):
                items[places] = members[generator.randint(0, len(members), len(places))]
        return items
