r"""LayerNorm over the last dimension, with an affine per particle.

    y_r = (x_r - mean(x_r)) / √(var(x_r) + ε) · w_k + b_k,   row r belongs to particle k = r // (R / K)

Backward, with x̂ the normalized row and ĝ = w · ∂y:

    ∂x = (ĝ - mean(ĝ) - x̂ mean(ĝ x̂)) / √(var + ε),   ∂w_k = Σ_r ∂y x̂,   ∂b_k = Σ_r ∂y

Each program of the backward pass walks over some rows of one particle and keeps their share of ∂w and ∂b to itself; the
shares are summed afterwards, in a fixed order, so that results do not change from run to run.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_PROGRAMS = 528  # four per multiprocessor of a large GPU


@triton.jit
def _forward(
    x, y, weight, bias, mean, rstd, rows_each, weight_stride, bias_stride, eps,
    D: tl.constexpr, BLOCK: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    particle = row // rows_each
    column = tl.arange(0, BLOCK)
    inside = column < D
    value = tl.load(x + row * D + column, mask=inside, other=0.0).to(tl.float32)
    centre = tl.sum(value, axis=0) / D
    difference = tl.where(inside, value - centre, 0.0)
    scale = 1 / tl.sqrt(tl.sum(difference * difference, axis=0) / D + eps)
    w = tl.load(weight + particle * weight_stride + column, mask=inside, other=0.0)
    out = difference * scale * w
    if HAS_BIAS:
        out += tl.load(bias + particle * bias_stride + column, mask=inside, other=0.0)
    tl.store(y + row * D + column, out.to(y.dtype.element_ty), mask=inside)
    tl.store(mean + row, centre)
    tl.store(rstd + row, scale)


@triton.jit
def _backward(
    x, dy, dx, weight, mean, rstd, shares, rows_each, parts, weight_stride,
    D: tl.constexpr, BLOCK: tl.constexpr, AFFINE: tl.constexpr,
):  # fmt: skip
    particle = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    column = tl.arange(0, BLOCK)
    inside = column < D
    w = tl.load(weight + particle * weight_stride + column, mask=inside, other=0.0)
    dw = tl.zeros([BLOCK], tl.float32)
    db = tl.zeros([BLOCK], tl.float32)
    each = tl.cdiv(rows_each, parts)
    for number in range(part * each, tl.minimum((part + 1) * each, rows_each)):
        row = particle * rows_each + number
        value = tl.load(x + row * D + column, mask=inside, other=0.0).to(tl.float32)
        slope = tl.load(dy + row * D + column, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(rstd + row)
        normal = tl.where(inside, (value - tl.load(mean + row)) * scale, 0.0)
        scaled = slope * w
        along = tl.sum(scaled * normal, axis=0) / D
        flat = tl.sum(scaled, axis=0) / D
        tl.store(dx + row * D + column, ((scaled - flat - normal * along) * scale).to(dx.dtype.element_ty), mask=inside)
        if AFFINE:
            dw += slope * normal
            db += slope
    if AFFINE:
        share = shares + (particle * parts + part) * D + column
        tl.store(share, dw, mask=inside)
        tl.store(share + tl.num_programs(0).to(tl.int64) * parts * D, db, mask=inside)


class _TokenNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, eps: float) -> Tensor:
        width = x.shape[-1]
        rows = x.numel() // width
        y = torch.empty_like(x)
        mean, rstd = (torch.empty(rows, dtype=torch.float32, device=x.device) for _ in range(2))
        block = triton.next_power_of_2(width)
        each = rows // weight.shape[0]
        shift, shift_stride = (weight, 0) if bias is None else (bias, bias.stride(0))
        _forward[(rows,)](
            x, y, weight, shift, mean, rstd, each, weight.stride(0), shift_stride, eps,
            D=width, BLOCK=block, HAS_BIAS=bias is not None, num_warps=_warps(block),
        )  # fmt: skip
        ctx.save_for_backward(x, weight, mean, rstd)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, rstd = ctx.saved_tensors
        dy = dy.contiguous()
        particles, width = weight.shape
        each = x.numel() // width // particles
        parts = max(1, min(each, _PROGRAMS // particles))
        affine = ctx.needs_input_grad[1] or ctx.needs_input_grad[2]
        shares = x.new_empty((2, particles, parts, width) if affine else 1, dtype=torch.float32)
        dx = torch.empty_like(x)
        block = triton.next_power_of_2(width)
        _backward[(particles, parts)](
            x, dy, dx, weight, mean, rstd, shares, each, parts, weight.stride(0),
            D=width, BLOCK=block, AFFINE=affine, num_warps=_warps(block),
        )  # fmt: skip
        dw, db = shares.sum(dim=2).unbind() if affine else (None, None)
        return dx, dw if ctx.needs_input_grad[1] else None, db if ctx.needs_input_grad[2] else None, None


def token_norm(x: Tensor, weight: Tensor, bias: Tensor | None, eps: float) -> Tensor:
    """LayerNorm of a contiguous (K·N, ..., D) tensor whose first N rows belong to the first particle, and so on.

    Args:
        x: bfloat16 or float32.
        weight: (K, D) float32, contiguous in its last dimension.
        bias: like weight, or None.
        eps: added to the variance.
    """
    return _TokenNorm.apply(x, weight, bias, eps)


def _warps(block: int) -> int:
    return min(max(block // 256, 1), 8)
