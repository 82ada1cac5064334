"""Numbers that more than one room takes of predictions."""

import torch
from torch import Tensor


def entropy(logits: Tensor) -> Tensor:
    """Shannon entropy in nats of softmax(logits) over the last dimension."""
    log_probs = logits.log_softmax(dim=-1)
    return -(log_probs.exp() * log_probs).sum(dim=-1)


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the masked entries of the last dimension, 0 where there are none."""
    kept = torch.where(mask, values, torch.zeros_like(values))
    return kept.sum(dim=-1) / mask.sum(dim=-1).clamp(min=1)


def disagreement(logits: Tensor) -> Tensor:
    """(..., B) share of ordered pairs of different particles that predict different classes, from (..., K, B, C)."""
    answers = logits.argmax(dim=-1)
    particles = answers.shape[-2]
    return (answers.unsqueeze(-3) != answers.unsqueeze(-2)).sum(dim=(-3, -2)) / max(1, particles * (particles - 1))
