r"""A convolution of stride 2 over the few channels of images, for ``polytta.gpu.stem``.

Blocks of 2x2 pixels become the channels of one, x', which gives the convolution stride 1. In channels-last layout a row
of its window is then one run of memory, pixel by pixel and channel by channel (index k), and the sum over a row is a
matrix product with nothing to gather. On the way back all columns j of a window are multiplied at once, and shifted and
added when the blocks are taken apart:

    y[p, q] = b + Σ_i Σ_k w[i; k] x'[p + i, q; k]
    z[p, q; j] = Σ_i w[i, j]ᵀ ∂y[p - i, q],   ∂x'[p, q] = Σ_j z[p, q - j; j]
"""

from dataclasses import dataclass
from math import gcd
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCKS = 256
"""Blocks of pixels that a program folds."""
_PIXELS, _OUT = 128, 64
"""What a program convolves: pixels, and channels of them."""
_LEAST, _MOST = 16, 64
"""Values of a window's row that are multiplied at a time."""


@dataclass(frozen=True)
class Geometry:
    """Where blocks of 2x2 pixels lie.

    Attributes:
        down: blocks in a column of an image.
        across: blocks in a row.
        up: rows of zeros above the image.
        side: columns of zeros to its left.
        filled: channels of a pixel when zeros are added, a power of two.
    """

    down: int
    across: int
    up: int
    side: int
    filled: int


@triton.jit
def _pixels_of(row, channels, high, wide, down, across, up, side, CP: tl.constexpr):
    """Image, channel, row and column that the values of a block come from, [MB, 4·CP], and whether they exist."""
    lane = tl.arange(0, 4 * CP)
    image = (row // (down * across)).to(tl.int64)[:, None]
    channel = (lane % CP)[None, :]
    i = (row // across % down * 2 - up)[:, None] + (lane // (2 * CP))[None, :]
    j = (row % across * 2 - side)[:, None] + (lane // CP % 2)[None, :]
    return image, channel, i, j, (channel < channels) & (i >= 0) & (i < high) & (j >= 0) & (j < wide)


@triton.jit
def _fold(
    x, y, rows, channels, high, wide, down, across, up, side, of_image, of_channel, of_row, of_column,
    CP: tl.constexpr, MB: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * MB + tl.arange(0, MB)
    image, channel, i, j, inside = _pixels_of(row, channels, high, wide, down, across, up, side, CP)
    place = image * of_image + channel * of_channel + i * of_row + j * of_column
    value = tl.load(x + place, mask=inside & (row < rows)[:, None], other=0.0)
    target = row[:, None] * (4 * CP) + tl.arange(0, 4 * CP)[None, :]
    tl.store(y + target, value, mask=(row < rows)[:, None])


@triton.jit
def _unfold(
    z, dx, rows, channels, high, wide, down, across, up, side, of_image, of_channel, of_row, of_column,
    CP: tl.constexpr, BROAD: tl.constexpr, MB: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * MB + tl.arange(0, MB)
    image, channel, i, j, inside = _pixels_of(row, channels, high, wide, down, across, up, side, CP)
    lane = tl.arange(0, 4 * CP)[None, :]
    total = tl.zeros([MB, 4 * CP], tl.float32)
    wide_z = across - BROAD + 1
    for shift in tl.static_range(BROAD):
        q = row % across - shift
        there = (row < rows) & (q >= 0) & (q < wide_z)
        start = (row // across * wide_z + q) * (BROAD * 4 * CP) + shift * 4 * CP
        total += tl.load(z + start[:, None] + lane, mask=there[:, None], other=0.0).to(tl.float32)
    place = image * of_image + channel * of_channel + i * of_row + j * of_column
    tl.store(dx + place, total.to(dx.dtype.element_ty), mask=inside & (row < rows)[:, None])


@triton.jit
def _convolve(
    x, weight, bias, y, rows, high, wide, down, across, outs,
    C: tl.constexpr, TALL: tl.constexpr, RUN: tl.constexpr, ABOVE: tl.constexpr, HAS_BIAS: tl.constexpr,
    KB: tl.constexpr, MB: tl.constexpr, NB: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * MB + tl.arange(0, MB)
    out = tl.program_id(1) * NB + tl.arange(0, NB)
    exists, wanted = (row < rows)[:, None], (out < outs)[None, :]
    top = row // across % down - ABOVE
    start = ((row // (down * across) * high + top) * wide + row % across) * C
    total = tl.zeros([MB, NB], tl.float32)
    for step in range(TALL * RUN // KB):
        i, k = step // (RUN // KB), step % (RUN // KB) * KB + tl.arange(0, KB)
        seen = exists
        if ABOVE > 0:  # rows of zeros above and below
            seen = exists & ((top + i >= 0) & (top + i < high))[:, None]
        pixels = tl.load(x + start[:, None] + (i * wide * C + k)[None, :], mask=seen, other=0.0)
        window = tl.load(weight + out[None, :] * (TALL * RUN) + (i * RUN + k)[:, None], mask=wanted, other=0.0)
        total = tl.dot(pixels, window, total)
    if HAS_BIAS:
        total += tl.load(bias + out, mask=out < outs, other=0.0).to(tl.float32)[None, :]
    tl.store(y + row[:, None] * outs + out[None, :], total.to(y.dtype.element_ty), mask=exists & wanted)


class _StemConvolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, at: Geometry) -> Tensor:
        images, outs, lanes = x.shape[0], weight.shape[0], 4 * at.filled
        tall, broad = weight.shape[1], weight.shape[2] // lanes
        folded = torch.empty(images, at.down, at.across, lanes, dtype=x.dtype, device=x.device)
        rows = images * at.down * at.across
        ctx.blocks = (rows, *x.shape[1:], at.down, at.across, at.up, at.side)
        _fold[(triton.cdiv(rows, _BLOCKS),)](x, folded, *ctx.blocks, *x.stride(), CP=at.filled, MB=_BLOCKS, num_warps=2)
        shape = (images, outs, at.down - tall + 1, at.across - broad + 1)
        y = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
        _launch(folded, weight, bias, y.permute(0, 2, 3, 1), above=0)
        ctx.save_for_backward(weight)
        ctx.at, ctx.like = at, torch.empty_like(x, device="meta")
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        (weight,) = ctx.saved_tensors
        at: Geometry = ctx.at
        _, tall, run = weight.shape
        dy = dy.permute(0, 2, 3, 1).contiguous()
        z = torch.empty(dy.shape[0], at.down, dy.shape[2], run, dtype=dy.dtype, device=dy.device)
        _launch(dy, weight.flip(1).permute(2, 1, 0).contiguous(), None, z, above=tall - 1)
        dx = torch.empty_like(ctx.like, device=dy.device)
        if 2 * at.down - at.up < dx.shape[2] or 2 * at.across - at.side < dx.shape[3]:
            dx.zero_()  # no window reaches the last row or column
        _unfold[(triton.cdiv(ctx.blocks[0], _BLOCKS),)](
            z, dx, *ctx.blocks, *dx.stride(), CP=at.filled, BROAD=run // (4 * at.filled), MB=_BLOCKS, num_warps=2
        )
        return dx, None, None, None


def _launch(x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor, above: int) -> None:
    """Convolves (N, H, W, C) with (O, h, w·C), with as many rows of zeros above the images as below."""
    (outs, tall, run), (_, high, wide, channels) = weight.shape, x.shape
    images, down, across, _ = y.shape
    rows, width = images * down * across, min(_OUT, max(_LEAST, int(triton.next_power_of_2(outs))))
    # Triton's interpreter takes the bits of bfloat16 for whole numbers when it multiplies matrices.
    factors = (x, weight) if x.is_cuda else (x.float(), weight.float())
    _convolve[triton.cdiv(rows, _PIXELS), triton.cdiv(outs, width)](
        *factors, weight if bias is None else bias, y, rows, high, wide, down, across, outs,
        C=channels, TALL=tall, RUN=run, ABOVE=above, HAS_BIAS=bias is not None,
        KB=gcd(run, _MOST), MB=_PIXELS, NB=width, num_warps=4, num_stages=2,
    )  # fmt: skip


def stem_convolution(x: Tensor, weight: Tensor, bias: Tensor | None, at: Geometry) -> Tensor:
    """What the convolution returns, channels-last; its weights are not learnt.

    Args:
        x: (N, C, H, W) of any layout.
        weight: (O, h, w·4·filled) over blocks, contiguous.
        bias: (O,) or None.
        at: where the blocks lie.
    """
    return _StemConvolution.apply(x, weight, bias, at)


def takes_stem(x: Tensor, weight: Tensor, at: Geometry) -> bool:
    """Whether the kernels know such a weight, and can count the pixels with 32 bits."""
    outs, _, run = weight.shape
    largest = x.shape[0] * at.down * at.across * max(outs, run)
    return min(gcd(run, _MOST), gcd(outs, _MOST)) >= _LEAST and largest < 2**31
