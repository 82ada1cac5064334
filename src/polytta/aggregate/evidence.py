r"""Label-free evidence: trust the particles that are sure of themselves *and* still use all their classes.

    sᵢ = 2 H(mean over the stream of pᵢ) - mean over the stream of H(pᵢ),   wᵢ ∝ exp(5 sᵢ / ln 10),   p ∝ Π pᵢ^wᵢ

The mutual information between images and particle i's answers, plus once more the entropy of its mean answer. A
particle that has learnt nothing, or sees badly, is unsure of single images and scores low; one that has collapsed onto
few classes is sure of them but scores lower still. Balance counts twice because sureness is what every particle is
trained to show. The weighted geometric mean lets whoever is sure of *this* image speak louder, also where no particle
is best over the whole stream, as in a mixture of shifts; probabilities count as at least 10⁻⁶, so that nobody has a
veto. Five per factor of ten of information, so that being sure is worth the same among ten classes and among a
thousand. The scores cover about the last 1,000 images and never the batch they are used on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import ClassVar

import torch
from torch import Tensor

from polytta.aggregate.base import Aggregate

HORIZON = 1000
SHARPNESS = 5.0
SMALLEST_PROB = 1e-6
FORMULA = "2 H(mean) - mean H in factors of ten, geometric"
"""Goes with ``scores``, ``observe`` and ``combine``: results made with another one are other results."""


def begin(particles: int, num_classes: int, like: Tensor) -> dict[str, Tensor]:
    """State before the first image."""
    return {
        "mean_probs": torch.zeros(particles, num_classes, dtype=like.dtype, device=like.device),
        "mean_entropy": torch.zeros(particles, dtype=like.dtype, device=like.device),
        "images": torch.zeros((), dtype=like.dtype, device=like.device),
    }


def num_classes(state: Mapping[str, Tensor]) -> int:
    """C of a state, 0 of an empty one."""
    return state["mean_probs"].shape[1] if state else 0


def observe(state: Mapping[str, Tensor], logits: Tensor) -> dict[str, Tensor]:
    """State after a batch of (K, B, C) logits."""
    log_probs = logits.detach().log_softmax(dim=-1).to(state["mean_probs"].dtype)
    probs = log_probs.exp()
    entropies = -(probs * log_probs).sum(dim=-1)
    images = (state["images"] + logits.shape[1]).clamp(max=HORIZON)
    rate = (logits.shape[1] / images).clamp(max=1.0)
    return {
        "mean_probs": torch.lerp(state["mean_probs"], probs.mean(dim=1), rate),
        "mean_entropy": torch.lerp(state["mean_entropy"], entropies.mean(dim=1), rate),
        "images": images,
    }


def scores(state: Mapping[str, Tensor]) -> Tensor:
    """(K,) sᵢ in nats."""
    mean = state["mean_probs"]
    return -2 * torch.xlogy(mean, mean).sum(dim=1) - state["mean_entropy"]


@dataclass(frozen=True)
class Evidence(Aggregate):
    """The weighted geometric mean; all weights are equal before anything is known of the particles."""

    name: ClassVar[str] = "evidence"

    def facts(self) -> dict[str, float | str]:
        """Formula and constants of the weights."""
        return {"formula": FORMULA, "horizon": HORIZON, "sharpness": SHARPNESS, "smallest_prob": SMALLEST_PROB}

    def combine(self, logits: Tensor, evidence: Mapping[str, Tensor]) -> Tensor:
        """log softmax Σ wᵢ log pᵢ."""
        own = scores(evidence).reshape(logits.shape[:-2]) if evidence else logits.new_zeros(logits.shape[:-2])
        weights = (SHARPNESS * own / log(10)).softmax(dim=-1).to(logits.dtype)
        told = logits.log_softmax(dim=-1).clamp(min=log(SMALLEST_PROB))
        return (weights[..., None, None] * told).sum(dim=-3).log_softmax(dim=-1)
