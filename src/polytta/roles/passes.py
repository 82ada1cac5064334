"""Forward passes of the whole population, and the samples of them that particles learn from."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Pass:
    """One forward pass of the whole population.

    Attributes:
        theta: (K, P) parameters it was made with; gradients are taken with respect to these.
        x: (K, B, ...) images as the particles see them.
        logits: (K, B, C).
        where: the (particle, sample) pairs that were computed; None means all.
        view: which view of the batch this is.
        unlensed: (K, B, ...) the images before each particle's lens, of which ``x`` is a differentiable function, where
            input gradients are wanted and lenses differ; else None.
        features: (K, B, D) what the logits are made of, where the network tells it (``polytta.clip`` does); else None.
    """

    theta: Tensor
    x: Tensor
    logits: Tensor
    where: Tensor | None = None
    view: int = 0
    unlensed: Tensor | None = None
    features: Tensor | None = None

    @property
    def images(self) -> Tensor:
        """(K, B, ...) what input gradients are taken of: only before different lenses do pixels mean the same."""
        return self.x if self.unlensed is None else self.unlensed


@dataclass(frozen=True)
class Sight:
    """What particles see of a batch, and say of it.

    Attributes:
        passes: what to learn from, one per view.
        logits: (K, B, C) of the batch's images, without history; evidence is taken from these.
        answer: (K, B, C) logits to answer from, which a method may have corrected.
    """

    passes: Sequence[Pass]
    logits: Tensor
    answer: Tensor


@dataclass(frozen=True)
class Selection:
    """The samples each particle learns from.

    Attributes:
        mask: (K, B) booleans.
        weight: (K, B) factors of the sample losses, without gradient; None means 1.
        counts: (filters, K), how many samples were left after each filter.
    """

    mask: Tensor
    weight: Tensor | None
    counts: Tensor

    @classmethod
    def of(cls, *filters: Tensor, weight: Tensor | None = None) -> "Selection":
        """Samples left by successive filters, each a subset of the one before."""
        return cls(filters[-1], weight, torch.stack([mask.sum(dim=1) for mask in filters]))

    @classmethod
    def everything(cls, like: Pass) -> "Selection":
        """Every sample of a pass, at weight 1."""
        return cls.of(torch.ones(like.logits.shape[:2], dtype=torch.bool, device=like.logits.device))


def any_selected(selections: Sequence[Selection]) -> Tensor:
    """(K,) whether a particle kept a sample in any of them."""
    return torch.stack([selection.mask.any(dim=1) for selection in selections]).any(dim=0)
