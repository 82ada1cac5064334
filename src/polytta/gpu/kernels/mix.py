r"""Weighted sums of what particles have, sample by sample, for Grad.

    y[g, i, b] = Σ_j w[g, i, j, b] x[g, j, b]

As matrix products these are flatter than libraries are made for. Here one program has all particles' values at hand.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

_VALUES = 1024
"""Of each particle that a program mixes."""


@triton.jit
def _mix(weights, x, y, particles, samples, length, NB: tl.constexpr):
    population, sample = (tl.program_id(0) // samples).to(tl.int64), tl.program_id(0) % samples
    at = tl.program_id(1) * NB + tl.arange(0, NB)
    for i in range(particles):
        total = tl.zeros([NB], tl.float32)
        for j in range(particles):
            weight = tl.load(weights + ((population * particles + i) * particles + j) * samples + sample)
            start = ((population * particles + j) * samples + sample) * length
            total += weight * tl.load(x + start + at, mask=at < length, other=0.0)
        start = ((population * particles + i) * samples + sample) * length
        tl.store(y + start + at, total, mask=at < length)


def mix(weights: Tensor, x: Tensor) -> Tensor:
    """The sums.

    Args:
        weights: (..., K, K, B) float32.
        x: (..., K, B, D) float32, contiguous.
    """
    y = torch.empty_like(x)
    particles, samples, length = x.shape[-3:]
    grid = (x.numel() // (particles * length), int(triton.cdiv(length, _VALUES)))
    _mix[grid](weights.contiguous(), x, y, particles, samples, length, NB=_VALUES)
    return y
