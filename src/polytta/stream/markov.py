"""A stream that walks over (domain, class) states, an idea of UniTTA (Du et al. 2024, arXiv 2407.20080).

Two chains move side by side, one over the domains and one over the classes. Each has an *anchor*: it stays
for ``dwell`` images, then at each further image it stays with probability ``stay`` and otherwise moves on.
An image is taken at the anchor with odds ``ratio`` against any other single state. With ``images="once"``
every image comes at most once and the odds of a state also count the images left in it; with ``"again"``
images are drawn with replacement.

The other scenarios are special cases:

* mild and batch1: domains ``Chain(stay=1)``, classes ``Chain(ratio=1)``, once, ``fresh_per_domain``;
* continual: the same without ``fresh_per_domain``;
* mixed: both chains ``Chain(ratio=1)``, once;
* label_shift with C classes: domains ``Chain(dwell=100 * C)``, classes ``Chain(dwell=100, ratio=r)``, again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from polytta.errors import InputError
from polytta.stream.order import Labels, Order, Reset, require_positive


@dataclass(frozen=True)
class Chain:
    """How one coordinate of the state moves.

    Attributes:
        stay: Probability of staying, at each image after the first ``dwell``.
        dwell: Images for which the anchor stays in any case.
        ratio: Odds of the anchor against any other single state: 1 makes it irrelevant, infinity binding.
        step: Where the anchor moves: on by one in a fixed round, or to any other with equal probability.
    """

    stay: float = 0.0
    dwell: int = 1
    ratio: float = math.inf
    step: Literal["round", "any"] = "round"

    def __post_init__(self) -> None:
        require_positive("dwell", self.dwell)
        if not 0 <= self.stay <= 1:
            raise InputError(f"stay: got {self.stay}; allowed is a probability.")
        if not self.ratio >= 1:
            raise InputError(f"ratio: got {self.ratio}; allowed is 1 to infinity.")
        if self.step not in ("round", "any"):
            raise InputError(f"step: got {self.step!r}; allowed are round and any.")


@dataclass(frozen=True)
class Markov:
    """Two chains, how images are drawn, how many, and whether each new domain asks for a fresh model."""

    scenario: ClassVar[str] = "markov"

    domains: Chain = field(default_factory=lambda: Chain(stay=0.99, step="any"))
    classes: Chain = field(default_factory=lambda: Chain(stay=0.9, step="any"))
    images: Literal["once", "again"] = "once"
    length: int | None = None
    fresh_per_domain: bool = False
    batch_size: int = 64
    seed: int = 2021

    @property
    def reset(self) -> Reset:
        """A segment per stay in a domain, or one for all."""
        return "segment" if self.fresh_per_domain else "never"

    def order(self, labels: Sequence[Labels]) -> Order:
        """Walk."""
        total = sum(map(len, labels))
        length = self.length if self.length is not None else total
        require_positive("length", length)
        if self.images not in ("once", "again"):
            raise InputError(f"images: got {self.images!r}; allowed are once and again.")
        if self.images == "again" and self.length is None:
            raise InputError('length: got None with images="again", which never runs out; allowed is a number.')
        if self.images == "once" and length > total:
            raise InputError(f'length: got {length}; allowed with images="once" is at most {total}.')
        rng = np.random.default_rng(self.seed)
        cells = _Cells(labels, once=self.images == "once", rng=rng)
        domains = _Walker(self.domains, np.arange(len(labels)), rng)
        classes = _Walker(self.classes, rng.permutation(cells.left.shape[1]), rng)
        domain = np.empty(length, np.int32)
        item = np.empty(length, np.int64)
        for position in range(length):
            here = domains.draw(cells.domain_odds())
            label = classes.draw(cells.class_odds(here))
            domain[position], item[position] = here, cells.take(here, label)
        starts: tuple[int, ...] = (0,)
        if self.fresh_per_domain:
            starts = (0, *(int(p) + 1 for p in np.flatnonzero(np.diff(domain))))
        return Order(domain, item, starts)


class _Walker:
    """The anchor of one chain and the draw of a state around it."""

    def __init__(self, chain: Chain, around: NDArray[np.int64], rng: np.random.Generator) -> None:
        self.chain, self.around, self.rng = chain, around, rng
        self.place = 0
        self.images = 0

    def draw(self, odds: NDArray[np.float64]) -> int:
        """Move the anchor, then draw a state; states with zero odds are closed."""
        chain = self.chain
        if self.images >= chain.dwell and self.rng.random() >= chain.stay:
            self._move()
        if math.isinf(chain.ratio):
            while not odds[self.around[self.place]]:
                self._move()
            self.images += 1
            return int(self.around[self.place])
        self.images += 1
        weighted = odds.copy()
        weighted[self.around[self.place]] *= chain.ratio
        cumulative = weighted.cumsum()
        return int(cumulative.searchsorted(self.rng.random() * cumulative[-1], side="right"))

    def _move(self) -> None:
        states = len(self.around)
        hop = 1 if self.chain.step == "round" or states == 1 else int(self.rng.integers(1, states))
        self.place = (self.place + hop) % states
        self.images = 0


class _Cells:
    """The images of every (domain, class), shuffled once and handed out from the end."""

    def __init__(self, labels: Sequence[Labels], once: bool, rng: np.random.Generator) -> None:
        self.once, self.rng = once, rng
        classes = np.unique(np.concatenate(list(labels)))
        self.members = [[rng.permutation(np.flatnonzero(y == c)) for c in classes] for y in labels]
        self.left = np.array([[len(cell) for cell in row] for row in self.members], np.float64)

    def domain_odds(self) -> NDArray[np.float64]:
        counts: NDArray[np.float64] = self.left.sum(1)
        return counts if self.once else (counts > 0).astype(np.float64)

    def class_odds(self, domain: int) -> NDArray[np.float64]:
        counts: NDArray[np.float64] = self.left[domain]
        return counts if self.once else (counts > 0).astype(np.float64)

    def take(self, domain: int, label: int) -> int:
        cell = self.members[domain][label]
        if not self.once:
            return int(cell[self.rng.integers(len(cell))])
        self.left[domain, label] -= 1
        return int(cell[int(self.left[domain, label])])
