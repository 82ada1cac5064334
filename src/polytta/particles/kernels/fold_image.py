r"""Blocks of 2x2 pixels as the channels of one, for ``polytta.particles.stem``.

    y[n, p, q, (a, b, c)] = x[n, c, 2p + a - u, 2q + b - s],   0 outside the image

A pixel is in one block, so the way back is the same the other way round.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_ROWS = 256
"""Pixels a program handles."""


@triton.jit
def _fold(
    x, y, rows, channels, high, wide, down, across, up, side, of_image, of_channel, of_row, of_column,
    CP: tl.constexpr, MB: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * MB + tl.arange(0, MB)
    lane = tl.arange(0, 4 * CP)
    image = (row // (down * across)).to(tl.int64)[:, None]
    channel = (lane % CP)[None, :]
    i = (row // across % down * 2 - up)[:, None] + (lane // (2 * CP))[None, :]
    j = (row % across * 2 - side)[:, None] + (lane // CP % 2)[None, :]
    inside = (row < rows)[:, None] & (channel < channels) & (i >= 0) & (i < high) & (j >= 0) & (j < wide)
    value = tl.load(x + image * of_image + channel * of_channel + i * of_row + j * of_column, mask=inside, other=0.0)
    target = row.to(tl.int64)[:, None] * (4 * CP) + lane[None, :]
    tl.store(y + target, value.to(y.dtype.element_ty), mask=(row < rows)[:, None])


@triton.jit
def _unfold(
    dy, dx, rows, channels, high, wide, down, across, up, side, of_image, of_channel, of_row, of_column,
    CP: tl.constexpr, MB: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * MB + tl.arange(0, MB)
    image, i, j = (row // (high * wide)).to(tl.int64)[:, None], (row // wide % high)[:, None], (row % wide)[:, None]
    channel = tl.arange(0, CP)[None, :]
    p, q = (i + up) // 2, (j + side) // 2
    wanted = (row < rows)[:, None] & (channel < channels)
    place = ((image * down + p) * across + q) * (4 * CP) + ((i + up) % 2 * 2 + (j + side) % 2) * CP + channel
    slope = tl.load(dy + place, mask=wanted & (p < down) & (q < across), other=0.0)
    tl.store(dx + image * of_image + channel * of_channel + i * of_row + j * of_column, slope, mask=wanted)


class _FoldImage(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, down: int, across: int, up: int, side: int, filled: int) -> Tensor:
        images, channels, high, wide = x.shape
        y = torch.empty(images, down, across, 4 * filled, dtype=x.dtype, device=x.device)
        ctx.sizes = (channels, high, wide, down, across, up, side)
        ctx.filled, ctx.shape, ctx.strides = filled, x.shape, torch.empty_like(x, device="meta").stride()
        rows = images * down * across
        _fold[(triton.cdiv(rows, _ROWS),)](x, y, rows, *ctx.sizes, *x.stride(), CP=filled, MB=_ROWS, num_warps=2)
        return y.permute(0, 3, 1, 2)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        dy = dy.contiguous(memory_format=torch.channels_last)
        dx = torch.empty_strided(ctx.shape, ctx.strides, dtype=dy.dtype, device=dy.device)
        rows = ctx.shape[0] * ctx.shape[2] * ctx.shape[3]
        _unfold[(triton.cdiv(rows, _ROWS),)](
            dy, dx, rows, *ctx.sizes, *ctx.strides, CP=ctx.filled, MB=_ROWS, num_warps=2
        )
        return dx, None, None, None, None, None


def fold_image(x: Tensor, down: int, across: int, up: int, side: int, filled: int) -> Tensor:
    """Folds images (N, C, H, W) of any layout to channels-last ones (N, 4·filled, down, across).

    Args:
        x: the images.
        down: rows of the folded images.
        across: their columns.
        up: rows of zeros above the image.
        side: columns of zeros to its left.
        filled: channels of a pixel when zeros are added, a power of two.
    """
    return _FoldImage.apply(x, down, across, up, side, filled)
