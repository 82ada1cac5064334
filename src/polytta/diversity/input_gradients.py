"""How alike the input gradients of particles are."""

from collections.abc import Callable

import torch
from torch import Tensor

Sums = Callable[[Tensor, Tensor], Tensor]
"""Σ_j w_ijb v_jb, see ``polytta.roles.objective.weighted_sums``."""

_SMALL = 2**22
"""Values of all products up to which they are written down before they are summed: a matrix product of few particles
gives a GPU's units too little to share."""


def products(gradients: Tensor, mask: Tensor) -> Tensor:
    """(..., K, K, B) products of input gradients (..., K, B, *image), which have as many dimensions more than mask."""
    flat = gradients.flatten(mask.dim())
    if flat.numel() * mask.shape[-2] <= _SMALL:
        return (flat.unsqueeze(-3) * flat.unsqueeze(-4)).sum(dim=-1)
    if gradients.dim() > mask.dim() + 1:  # row by row of the image: more products to share
        rows = gradients.flatten(mask.dim(), -2)
        return torch.einsum("...ibrd,...jbrd->...ijbr", rows, rows).sum(dim=-1)
    return torch.einsum("...ibd,...jbd->...ijb", flat, flat)


def through_products(slope: Tensor, gradients: Tensor, mask: Tensor, sums: Sums) -> Tensor:
    """(..., K, B, *image) slope with respect to the gradients, given that with respect to their products."""
    both = slope + slope.transpose(-3, -2)
    return sums(both, gradients.flatten(mask.dim())).reshape(gradients.shape)


def alignment(dots: Tensor, mask: Tensor, form: str) -> Tensor:
    """Mean over ordered pairs of particles of their alignment on the samples both kept.

    Args:
        dots: (..., K, K, B) products of the per-sample input gradients.
        mask: (..., K, B) kept samples.
        form: "dot", "cosine", or "l2" for the negated squared distance.

    Returns:
        (...) one value per population.
    """
    particles = mask.shape[-2]
    squares = dots.diagonal(dim1=-3, dim2=-2).transpose(-2, -1)
    if form == "cosine":
        norms = squares.clamp(min=1e-30).sqrt()
        dots = dots / (norms.unsqueeze(-3) * norms.unsqueeze(-2))
    elif form == "l2":
        dots = 2 * dots - squares.unsqueeze(-3) - squares.unsqueeze(-2)
    both = _shared(mask)
    means = torch.where(both, dots, torch.zeros_like(dots)).sum(dim=-1) / both.sum(dim=-1).clamp(min=1)
    return means.sum(dim=(-2, -1)) / (particles * (particles - 1))


def mean_cosine(dots: Tensor, mask: Tensor) -> Tensor:
    """(...) mean cosine between input gradients over the pairs of particles that share a sample, for reports."""
    particles = mask.shape[-2]
    sharing = _shared(mask).any(dim=-1).sum(dim=(-2, -1)).clamp(min=1)
    return alignment(dots, mask, "cosine") * (particles * (particles - 1)) / sharing


def _shared(mask: Tensor) -> Tensor:
    """(..., K, K, B) samples that two different particles both kept."""
    others = ~torch.eye(mask.shape[-2], dtype=torch.bool, device=mask.device)
    return mask.unsqueeze(-3) & mask.unsqueeze(-2) & others.unsqueeze(-1)
