"""How alike the input gradients of particles are."""

import torch
from torch import Tensor


def alignment(gradients: Tensor, mask: Tensor, form: str) -> Tensor:
    """Mean over ordered pairs of particles of their alignment on the samples both kept.

    Args:
        gradients: (K, B, ...) per-sample input gradients.
        mask: (K, B) kept samples.
        form: "dot", "cosine", or "l2" for the negated squared distance.
    """
    particles = gradients.shape[0]
    flat = gradients.flatten(2)
    dots = torch.einsum("ibd,jbd->ijb", flat, flat)
    squares = dots.diagonal().transpose(0, 1)
    if form == "cosine":
        norms = squares.clamp(min=1e-30).sqrt()
        dots = dots / (norms.unsqueeze(0) * norms.unsqueeze(1))
    elif form == "l2":
        dots = 2 * dots - squares.unsqueeze(0) - squares.unsqueeze(1)
    both = _shared(mask)
    means = torch.where(both, dots, torch.zeros_like(dots)).sum(dim=2) / both.sum(dim=2).clamp(min=1)
    return means.sum() / (particles * (particles - 1))


def mean_cosine(gradients: Tensor, mask: Tensor) -> Tensor:
    """Mean cosine between input gradients over the pairs of particles that share a sample, for reports."""
    particles = gradients.shape[0]
    sharing = _shared(mask).any(dim=2).sum().clamp(min=1)
    return alignment(gradients, mask, "cosine") * (particles * (particles - 1)) / sharing


def _shared(mask: Tensor) -> Tensor:
    """(K, K, B) samples that two different particles both kept."""
    others = ~torch.eye(mask.shape[0], dtype=torch.bool, device=mask.device)
    return mask.unsqueeze(0) & mask.unsqueeze(1) & others.unsqueeze(2)
