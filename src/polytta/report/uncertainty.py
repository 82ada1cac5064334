r"""How sure a population is of single images, and of what its hypotheses are not.

    H(p),   I = H(Σ wᵢ pᵢ) - Σ wᵢ H(pᵢ),   d = Σ wᵢ [argmax pᵢ ≠ argmax p],   n = exp H(w)

p is the answer, pᵢ what hypothesis i says and wᵢ what it counts on this image. H(p) is large for every hard image; I
and d only where hypotheses see different things, which is what a single model cannot know of itself.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from polytta.roles.measures import entropy


@dataclass(frozen=True)
class Uncertainty:
    """Of B images, all (B,).

    Attributes:
        confidence: the top probability of the answer.
        entropy: of the answer, in nats.
        mutual_information: what hypotheses disagree about, in nats; 0 where all say the same.
        disagreement: the share of the weights whose hypotheses name another class than the answer.
        hypotheses: their effective number: 1 where one has all the weight, K where all count alike.
    """

    confidence: Tensor
    entropy: Tensor
    mutual_information: Tensor
    disagreement: Tensor
    hypotheses: Tensor

    @classmethod
    def of(cls, answer: Tensor, logits: Tensor, weights: Tensor) -> "Uncertainty":
        """From the answer (B, C), the particles' (K, B, C) logits and what each counts (B, K)."""
        shares = weights.mT.to(logits.dtype)
        probs = logits.softmax(dim=-1)
        mixed = (shares.unsqueeze(-1) * probs).sum(dim=0)
        of_mixture = -torch.xlogy(mixed, mixed).sum(dim=-1)
        elsewhere = logits.argmax(dim=-1) != answer.argmax(dim=-1)
        return cls(
            confidence=answer.softmax(dim=-1).amax(dim=-1),
            entropy=entropy(answer),
            mutual_information=(of_mixture - (shares * entropy(logits)).sum(dim=0)).clamp(min=0),
            disagreement=(shares * elsewhere).sum(dim=0),
            hypotheses=(-torch.xlogy(weights, weights).sum(dim=-1)).exp(),
        )
