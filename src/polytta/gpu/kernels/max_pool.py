r"""Max pooling of channels-last images.

    y_o = max over the window W(o) of x,   ∂x_i = Σ over the windows o ∋ i whose maximum x_i is, of ∂y_o

Torch keeps the place of each maximum in eight bytes and adds slopes into the image; here it is one byte, and every
pixel collects its own from the few windows it is in, so that results do not change from run to run. Of equal values
the first in the window counts, and NaN counts as the largest, as in torch.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from polytta.gpu.kernels.layout import channels_last

_TILE = 256
"""Values a program handles."""
_WIDTH = 64
"""Neighbouring channels of a program."""


@triton.jit
def _forward(
    x, y, which, rows, high, wide, down, across,
    C: tl.constexpr, SIZE: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, MB: tl.constexpr, CB: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * MB + tl.arange(0, MB)
    channel = tl.program_id(1) * CB + tl.arange(0, CB)
    image, top, left = row // (down * across), row // across % down * STRIDE - PAD, row % across * STRIDE - PAD
    wanted = (row < rows)[:, None] & (channel < C)[None, :]
    best = tl.full([MB, CB], float("-inf"), tl.float32)
    first = tl.maximum(-top, 0) * SIZE + tl.maximum(-left, 0)
    place = tl.zeros([MB, CB], tl.int32) + first[:, None]
    for i in tl.static_range(SIZE):
        for j in tl.static_range(SIZE):
            inside = (top + i >= 0) & (top + i < high) & (left + j >= 0) & (left + j < wide)
            pixel = (image * high + top + i) * wide + left + j
            seen = wanted & inside[:, None]
            value = tl.load(x + pixel[:, None] * C + channel[None, :], mask=seen, other=float("-inf")).to(tl.float32)
            larger = (value > best) | (value != value)
            best = tl.where(larger, value, best)
            place = tl.where(larger, i * SIZE + j, place)
    target = row[:, None] * C + channel[None, :]
    tl.store(y + target, best.to(y.dtype.element_ty), mask=wanted)
    tl.store(which + target, place.to(tl.uint8), mask=wanted)


@triton.jit
def _backward(
    dy, which, dx, rows, high, wide, down, across, cells_down, cells_across,
    C: tl.constexpr, SIZE: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, MB: tl.constexpr, CB: tl.constexpr,
):  # fmt: skip
    # The pixels of a cell of STRIDE x STRIDE are in the same windows, each at a place in them that is known beforehand.
    row = tl.program_id(0) * MB + tl.arange(0, MB)
    channel = tl.program_id(1) * CB + tl.arange(0, CB)
    image, up, side = row // (cells_down * cells_across), row // cells_across % cells_down, row % cells_across
    wanted = (row < rows)[:, None] & (channel < C)[None, :]
    for r in tl.static_range(STRIDE):
        for s in tl.static_range(STRIDE):
            i, j = up * STRIDE + r - PAD, side * STRIDE + s - PAD
            total = tl.zeros([MB, CB], tl.float32)
            for a in tl.static_range((SIZE - r + STRIDE - 1) // STRIDE):
                for b in tl.static_range((SIZE - s + STRIDE - 1) // STRIDE):
                    inside = (up >= a) & (up - a < down) & (side >= b) & (side - b < across)
                    window = ((image * down + up - a) * across + side - b)[:, None] * C + channel[None, :]
                    seen = wanted & inside[:, None]
                    mine = tl.load(which + window, mask=seen, other=255) == (a * STRIDE + r) * SIZE + b * STRIDE + s
                    total += tl.where(mine, tl.load(dy + window, mask=seen, other=0.0).to(tl.float32), 0.0)
            pixel = (image * high + i) * wide + j
            there = wanted & ((i >= 0) & (i < high) & (j >= 0) & (j < wide))[:, None]
            tl.store(dx + pixel[:, None] * C + channel[None, :], total.to(dx.dtype.element_ty), mask=there)


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, size: int, stride: int, padding: int) -> Tensor:
        images, channels, high, wide = x.shape
        down, across = ((side + 2 * padding - size) // stride + 1 for side in (high, wide))
        y = _images(x, images, channels, down, across)
        which = torch.empty_like(y, dtype=torch.uint8)
        ctx.window = {"SIZE": size, "STRIDE": stride, "PAD": padding}
        ctx.sides = (high, wide, down, across)
        grid, sizes = _cut(channels, images * down * across)
        _forward[grid](x, y, which, images * down * across, *ctx.sides, **ctx.window, **sizes, num_warps=1)
        ctx.save_for_backward(which)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        (which,) = ctx.saved_tensors
        dy = channels_last(dy)
        images, channels = dy.shape[:2]
        high, wide, _, _ = ctx.sides
        dx = _images(dy, images, channels, high, wide)
        cells = [int(triton.cdiv(side + ctx.window["PAD"], ctx.window["STRIDE"])) for side in (high, wide)]
        rows = images * cells[0] * cells[1]
        grid, sizes = _cut(channels, rows)
        _backward[grid](dy, which, dx, rows, *ctx.sides, *cells, **ctx.window, **sizes, num_warps=1)
        return dx, None, None, None


def max_pool(x: Tensor, size: int, stride: int, padding: int) -> Tensor:
    """Max pooling of channels-last images (N, C, H, W) with square windows of at most 15 pixels a side."""
    return _MaxPool.apply(x, size, stride, padding)


def _cut(channels: int, rows: int) -> tuple[tuple[int, int], dict[str, int]]:
    width = min(_WIDTH, int(triton.next_power_of_2(channels)))
    tall = _TILE // width
    return (int(triton.cdiv(rows, tall)), int(triton.cdiv(channels, width))), {"C": channels, "MB": tall, "CB": width}


def _images(like: Tensor, images: int, channels: int, high: int, wide: int) -> Tensor:
    shape = (images, channels, high, wide)
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=torch.channels_last)
