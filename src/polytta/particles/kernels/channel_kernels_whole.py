"""The GPU programs of ``channel_norm`` for units small enough to be held: every value is read once.

Names are those of ``channel_tiles``; MB is at least the size of a unit.
"""

import triton
import triton.language as tl

from polytta.particles.kernels.channel_tiles import (
    affine_of,
    by_channel,
    by_group,
    channels_of,
    load_tile,
    row_weight,
    slope_of,
    statistics_of,
)


@triton.jit
def whole_forward_kernel(
    x, y, mask, counts, weight, bias, mean, rstd, size, pixels, units_each, weight_stride, bias_stride, eps,
    C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr, CB: tl.constexpr, MB: tl.constexpr,
    RELU: tl.constexpr, HAS_BIAS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Statistics and output of a unit."""
    block, unit = tl.program_id(0), tl.program_id(1).to(tl.int64)
    channel, exists, member = channels_of(block, C, CG, NG, CB)
    row = tl.arange(0, MB)
    inside = row < size
    seen = inside[:, None] & exists[None, :]
    value = load_tile(x + unit * size * C, row, channel, seen, C)
    count = size * CG * 1.0
    counted = value
    if MASKED:
        count = tl.load(counts + unit) * CG
        marks = row_weight(mask, unit * size + row, inside, pixels)[:, None]
        counted = value * marks
    average = by_group(tl.sum(counted, axis=0), member) / count
    centre = by_channel(average, member)
    difference = tl.where(seen, value - centre[None, :], 0.0)
    square = difference * difference
    if MASKED:
        square *= marks
    deviation = 1 / tl.sqrt(by_group(tl.sum(square, axis=0), member) / count + eps)
    group = block * NG + tl.arange(0, NG)
    place = unit * (C // CG) + group
    tl.store(mean + place, average, mask=group < C // CG)
    tl.store(rstd + place, deviation, mask=group < C // CG)
    w, b = affine_of(weight, bias, unit // units_each, weight_stride, bias_stride, channel, exists, HAS_BIAS)
    out = difference * (by_channel(deviation, member) * w)[None, :] + b[None, :]
    if RELU:
        out = tl.maximum(out, 0.0)
    tl.store(y + unit * size * C + row[:, None] * C + channel[None, :], out.to(y.dtype.element_ty), mask=seen)


@triton.jit
def whole_backward_kernel(
    x, dy, dx, mask, counts, weight, bias, mean, rstd, totals, units, size, pixels, units_each,
    weight_stride, bias_stride,
    C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr, CB: tl.constexpr, MB: tl.constexpr,
    RELU: tl.constexpr, HAS_BIAS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Sums of the slopes of a unit, and its ∂x."""
    block, unit = tl.program_id(0), tl.program_id(1).to(tl.int64)
    channel, exists, member = channels_of(block, C, CG, NG, CB)
    centre, scale = statistics_of(unit, block, mean, rstd, member, C, CG, NG)
    w, b = affine_of(weight, bias, unit // units_each, weight_stride, bias_stride, channel, exists, HAS_BIAS)
    row = tl.arange(0, MB)
    inside = row < size
    seen = inside[:, None] & exists[None, :]
    value = load_tile(x + unit * size * C, row, channel, seen, C)
    normal = tl.where(seen, (value - centre[None, :]) * scale[None, :], 0.0)
    slope = slope_of(dy + unit * size * C, row, channel, seen, normal, w, b, C, RELU)
    dw, db = tl.sum(slope * normal, axis=0), tl.sum(slope, axis=0)
    tl.store(totals + unit * C + channel, dw, mask=exists)
    tl.store(totals + (units + unit) * C + channel, db, mask=exists)
    count = size * CG * 1.0
    if MASKED:
        count = tl.load(counts + unit) * CG
    along = by_channel(by_group(dw * w, member) / count, member)
    flat = by_channel(by_group(db * w, member) / count, member)
    through_statistics = flat[None, :] + normal * along[None, :]
    if MASKED:
        through_statistics *= row_weight(mask, unit * size + row, inside, pixels)[:, None]
    out = (slope * w[None, :] - through_statistics) * scale[None, :]
    tl.store(dx + unit * size * C + row[:, None] * C + channel[None, :], out.to(dx.dtype.element_ty), mask=seen)
