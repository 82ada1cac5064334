"""The order a scenario puts images in, and what every scenario offers.

An order depends on the labels of the domains and on the scenario alone; no image is read to make one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polytta.errors import InputError

Labels: TypeAlias = NDArray[np.int32]
Reset: TypeAlias = Literal["segment", "never"]


@dataclass(frozen=True, eq=False)
class Order:
    """Which image of which domain comes when.

    Attributes:
        domain: Number of the domain at each position.
        item: Index of the image within its domain at each position.
        starts: First position of each segment; a batch never reaches over the start of a segment.
    """

    domain: NDArray[np.int32]
    item: NDArray[np.int64]
    starts: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.item)


class Scenario(Protocol):
    """A frozen dataclass that can put the images of some domains in order.

    ``scenario`` is its name in records. A ``reset`` of ``segment`` asks for a fresh source model at the start
    of each segment, ``never`` for one model throughout.
    """

    scenario: ClassVar[str]

    @property
    def batch_size(self) -> int:
        """Images per batch."""

    @property
    def reset(self) -> Reset:
        """When the protocol asks for a fresh source model."""

    def order(self, labels: Sequence[Labels]) -> Order:
        """Put the images of the domains, given by their labels, in order."""


def shuffled_segments(labels: Sequence[Labels], seed: int, limit: int | None) -> Order:
    """Put domain after domain, each shuffled on its own; of each only the first ``limit`` images stay."""
    require_positive("limit", limit)
    items = [np.random.default_rng((seed, number)).permutation(len(y))[:limit] for number, y in enumerate(labels)]
    sizes = [len(part) for part in items]
    domain = np.repeat(np.arange(len(items), dtype=np.int32), sizes)
    starts = tuple(int(s) for s in np.cumsum([0, *sizes[:-1]]))
    return Order(domain, np.concatenate(items).astype(np.int64), starts)


def require_positive(argument: str, value: int | None) -> None:
    """Refuse counts below one; None means no bound."""
    if value is not None and value < 1:
        raise InputError(f"{argument}: got {value}; allowed is at least 1.")
