r"""BatchNorm by those of a particle's rows that count, all shapes static.

    y = w (x - μ) / σ + b,   μ and σ² of the n values that count

Rows that do not count are normalized like the others. Autograd would go over the images a dozen times on its way back;
by hand it is five, since what comes back is a straight line in x and in the slope dy of each channel of each row:

    dx = w dy / σ - c w (Σ dy + x̂ Σ dy x̂) / (n σ),   x̂ = (x - μ) / σ,   c = 1 for rows that count, else 0
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from polytta.network.medians import row_moments


def pooled(means: Tensor, variances: Tensor, counted: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Mean and variance of all values together, of rows of equally many; 0 where none counts."""
    rows = counted.sum(dim=dim, keepdim=True).clamp(min=1)
    mean = (means * counted).sum(dim=dim, keepdim=True) / rows
    var = ((variances + (means - mean).square()) * counted).sum(dim=dim, keepdim=True) / rows
    return mean.squeeze(dim), var.squeeze(dim)


def scale_and_shift(mean: Tensor, inverse: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """(K, C) what one pass over the images takes to normalize and to scale them; ``inverse`` is 1 / σ."""
    scale = inverse * weight
    return scale, -mean * scale if bias is None else torch.addcmul(bias, mean, scale, value=-1)


def counted_norm(x: Tensor, weight: Tensor, bias: Tensor | None, counted: Tensor, eps: float) -> Tensor:
    """The layer, to be differentiated once.

    Args:
        x: (K·N, C, ...), the first N rows of the first particle, and so on.
        weight: (K, C).
        bias: like weight, or None.
        counted: (K, N) 1 for rows that count, else 0.
        eps: added to the variance.
    """
    out: Tensor = _CountedNorm.apply(x, weight, bias, counted, eps)
    return out


class _CountedNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, counted: Tensor, eps: float) -> Tensor:
        mean, var = (one.unflatten(0, counted.shape) for one in row_moments(x))
        mean, var = pooled(mean, var, counted.unsqueeze(-1), dim=1)
        inverse = torch.rsqrt(var + eps)
        ctx.save_for_backward(x, weight, counted, mean, inverse)
        scale, shift = scale_and_shift(mean, inverse, weight, bias)
        # No view, which a layer that works in place could not change.
        out, rows = torch.empty_like(x), x.unflatten(0, counted.shape)
        torch.addcmul(_along(shift, rows), rows, _along(scale, rows), out=out.unflatten(0, counted.shape))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, counted, mean, inverse = ctx.saved_tensors
        rows, slopes = x.unflatten(0, counted.shape), slope.unflatten(0, counted.shape)
        over = [1, *range(3, rows.dim())]
        total = slopes.sum(dim=over)
        tilt = ((slopes * rows).sum(dim=over) - mean * total) * inverse
        dx = None
        if ctx.needs_input_grad[0]:
            scale = inverse * weight
            values = counted.sum(dim=1, keepdim=True).clamp(min=1) * rows[0, 0, 0].numel()
            each = -scale / values
            by_x = each * tilt * inverse
            level = torch.addcmul(each * total, by_x, mean, value=-1)
            level, by_x = (counted.unsqueeze(-1) * one.unsqueeze(1) for one in (level, by_x))
            line = torch.addcmul(_along(level, rows), rows, _along(by_x, rows))
            dx = torch.addcmul(line, slopes, _along(scale, rows)).flatten(0, 1)
        return dx, tilt, total if ctx.needs_input_grad[2] else None, None, None


def _along(values: Tensor, rows: Tensor) -> Tensor:
    """(K, C) or (K, N, C) values, to be laid over (K, N, C, ...)."""
    values = values.unsqueeze(1) if values.dim() == 2 else values
    return values.reshape(*values.shape, *[1] * (rows.dim() - 3))
