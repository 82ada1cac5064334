"""How the rows of a pass belong to particles.

A folded network is one module tree that serves every pass, so its norm layers must be told which pass they are in. They
read it from a ``CurrentFold``: a pass puts its own, unchanging ``Fold`` there before the network is called. Each thread
has its own, so that a prediction beside a step in another thread reads nothing of it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from polytta.network.neighbours import Company

Affine = dict[str, tuple[Tensor, Tensor | None]]
"""Per layer the particles' (K, ...) weight and bias."""


@dataclass(frozen=True)
class Fold:
    """One pass.

    Attributes:
        particles: K.
        affine: what the particles differ in; a layer without an entry uses its own affine for every particle.
        counts: rows per particle when they differ, particle by particle; None means equally many.
        partial: whether these are only the samples that a filter left over.
        mask: (K, B), the samples that count for batch statistics; None means all.
        twice: whether the pass will be differentiated twice.
        pseudo_images: (K,) how many images stored batch statistics count for; None means as the layer says for all.
        by_median: (K,) whose batch statistics are medians over images; None means nobody's.
        company: who counts for batch statistics, where somebody looks for images that bend them; None means ``mask``.
    """

    particles: int = 1
    affine: Affine = field(default_factory=dict)
    counts: tuple[int, ...] | None = None
    partial: bool = False
    mask: Tensor | None = None
    twice: bool = False
    pseudo_images: Tensor | None = None
    by_median: Tensor | None = None
    company: Company | None = None

    def rows(self, values: Tensor, size: int) -> Tensor:
        """(K, ...) per-particle values repeated for the ``size`` rows of a tensor."""
        if self.counts is None:
            each = size // self.particles
            if each == 1:
                return values
            return values.unsqueeze(1).expand(-1, each, *values.shape[1:]).flatten(0, 1)
        each = size // sum(self.counts)
        repeats = torch.tensor([count * each for count in self.counts], device=values.device)
        return values.repeat_interleave(repeats, dim=0, output_size=size)

    def row_counts(self, size: int) -> list[int]:
        """Rows of each particle in a tensor of ``size`` rows."""
        if self.counts is None:
            return [size // self.particles] * self.particles
        return [count * (size // sum(self.counts)) for count in self.counts]


class CurrentFold:
    """The pass that this thread is in; in none, the last that any thread was in.

    The latter is for code that runs a layer again outside a pass, such as activation checkpointing, which on a GPU
    happens in a thread of autograd's own.
    """

    def __init__(self) -> None:
        self._own = threading.local()
        self._last = Fold()

    @property
    def fold(self) -> Fold:
        """How rows belong to particles now."""
        return getattr(self._own, "fold", self._last)

    @contextmanager
    def during(self, fold: Fold) -> Iterator[None]:
        """Makes layers that are called inside belong to a pass."""
        self._own.fold = self._last = fold
        try:
            yield
        finally:
            del self._own.fold

    def __reduce__(self) -> tuple[type["CurrentFold"], tuple[()]]:
        """A copy of a network is in no pass."""
        return CurrentFold, ()
