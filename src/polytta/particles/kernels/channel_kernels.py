"""The GPU programs of ``channel_norm`` for units of any size: what they compute is said there.

Names are those of ``channel_tiles``.
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
def _known(totals, unit, units, channel, exists, C: tl.constexpr):
    """Two sums of a unit that other programs have taken, stored as (2, unit, channel)."""
    first = tl.load(totals + unit * C + channel, mask=exists, other=0.0)
    second = tl.load(totals + (units + unit) * C + channel, mask=exists, other=0.0)
    return first, second


@triton.jit
def _shift(x, unit, size, block, member, C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr):
    """First value of each channel's group, near enough to its mean to keep sums of squares accurate."""
    channel = tl.minimum((block * NG + tl.arange(0, NG)) * CG, C - 1)
    return by_channel(tl.load(x + unit * size * C + channel).to(tl.float32), member)


@triton.jit
def _sums(
    x, mask, unit, first, last, size, pixels, channel, exists, shift,
    C: tl.constexpr, MB: tl.constexpr, CB: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Over pixels first..last of a unit: sums of x - shift and of its square."""
    one = tl.zeros([MB, CB], tl.float32)
    two = tl.zeros([MB, CB], tl.float32)
    start = x + unit * size * C
    for at in range(first, last, MB):
        row = at + tl.arange(0, MB)
        inside = row < last
        seen = inside[:, None] & exists[None, :]
        difference = tl.where(seen, load_tile(start, row, channel, seen, C) - shift[None, :], 0.0)
        counted = difference
        if MASKED:
            counted = difference * row_weight(mask, unit * size + row, inside, pixels)[:, None]
        one += counted
        two += counted * difference
    return tl.sum(one, axis=0), tl.sum(two, axis=0)


@triton.jit
def _slope_sums(
    x, dy, unit, first, last, size, channel, exists, mean, scale, w, b,
    C: tl.constexpr, MB: tl.constexpr, CB: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """Over pixels first..last of a unit: sums of ∂y x̂ and of ∂y."""
    dw = tl.zeros([MB, CB], tl.float32)
    db = tl.zeros([MB, CB], tl.float32)
    start, slopes = x + unit * size * C, dy + unit * size * C
    for at in range(first, last, MB):
        row = at + tl.arange(0, MB)
        seen = (row < last)[:, None] & exists[None, :]
        normal = (load_tile(start, row, channel, seen, C) - mean[None, :]) * scale[None, :]
        slope = slope_of(slopes, row, channel, seen, normal, w, b, C, RELU)
        dw += slope * normal
        db += slope
    return tl.sum(dw, axis=0), tl.sum(db, axis=0)


@triton.jit
def sum_kernel(
    x, mask, parts, units, size, pixels, splits,
    C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr, CB: tl.constexpr, MB: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Sums of one part of a unit."""
    block, unit, part = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2)
    channel, exists, member = channels_of(block, C, CG, NG, CB)
    each = tl.cdiv(size, splits)
    shift = _shift(x, unit, size, block, member, C, CG, NG)
    last = tl.minimum((part + 1) * each, size)
    one, two = _sums(x, mask, unit, part * each, last, size, pixels, channel, exists, shift, C, MB, CB, MASKED)
    place = (unit * splits + part) * C + channel
    tl.store(parts + place, one, mask=exists)
    tl.store(parts + units * splits * C + place, two, mask=exists)


@triton.jit
def forward_kernel(
    x, y, mask, counts, weight, bias, mean, rstd, totals, units, size, pixels, splits, units_each,
    weight_stride, bias_stride, eps,
    C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr, CB: tl.constexpr, MB: tl.constexpr, KNOWN: tl.constexpr,
    RELU: tl.constexpr, HAS_BIAS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Statistics of a unit (from sums taken here, or known), then one part's output."""
    block, unit, part = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2)
    channel, exists, member = channels_of(block, C, CG, NG, CB)
    shift = _shift(x, unit, size, block, member, C, CG, NG)
    if KNOWN:
        one, two = _known(totals, unit, units, channel, exists, C)
    else:
        one, two = _sums(x, mask, unit, 0, size, size, pixels, channel, exists, shift, C, MB, CB, MASKED)
    count = size * CG * 1.0
    if MASKED:
        count = tl.load(counts + unit) * CG
    away = by_group(one, member) / count
    deviation = 1 / tl.sqrt(tl.maximum(by_group(two, member) / count - away * away, 0.0) + eps)
    centre, scale = shift + by_channel(away, member), by_channel(deviation, member)
    if part == 0:
        group = block * NG + tl.arange(0, NG)
        first_of_group = member & (tl.arange(0, CB)[:, None] % CG == 0)
        place = unit * (C // CG) + group
        tl.store(mean + place, by_group(centre, first_of_group), mask=group < C // CG)
        tl.store(rstd + place, deviation, mask=group < C // CG)
    w, b = affine_of(weight, bias, unit // units_each, weight_stride, bias_stride, channel, exists, HAS_BIAS)
    start, target = x + unit * size * C, y + unit * size * C
    each = tl.cdiv(size, splits)
    last = tl.minimum((part + 1) * each, size)
    for at in range(part * each, last, MB):
        row = at + tl.arange(0, MB)
        seen = (row < last)[:, None] & exists[None, :]
        value = load_tile(start, row, channel, seen, C)
        out = (value - centre[None, :]) * scale[None, :] * w[None, :] + b[None, :]
        if RELU:
            out = tl.maximum(out, 0.0)
        tl.store(target + row[:, None] * C + channel[None, :], out.to(y.dtype.element_ty), mask=seen)


@triton.jit
def slope_sum_kernel(
    x, dy, weight, bias, mean, rstd, parts, units, size, splits, units_each, weight_stride, bias_stride,
    C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr, CB: tl.constexpr, MB: tl.constexpr,
    RELU: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """Sums of the slopes of one part of a unit."""
    block, unit, part = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2)
    channel, exists, member = channels_of(block, C, CG, NG, CB)
    centre, scale = statistics_of(unit, block, mean, rstd, member, C, CG, NG)
    w, b = affine_of(weight, bias, unit // units_each, weight_stride, bias_stride, channel, exists, HAS_BIAS)
    each = tl.cdiv(size, splits)
    last = tl.minimum((part + 1) * each, size)
    dw, db = _slope_sums(x, dy, unit, part * each, last, size, channel, exists, centre, scale, w, b, C, MB, CB, RELU)
    place = (unit * splits + part) * C + channel
    tl.store(parts + place, dw, mask=exists)
    tl.store(parts + units * splits * C + place, db, mask=exists)


@triton.jit
def backward_kernel(
    x, dy, dx, mask, counts, weight, bias, mean, rstd, totals, units, size, pixels, splits, units_each,
    weight_stride, bias_stride,
    C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr, CB: tl.constexpr, MB: tl.constexpr, KNOWN: tl.constexpr,
    RELU: tl.constexpr, HAS_BIAS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Sums of the slopes of a unit (taken here, or known), then one part's ∂x."""
    block, unit, part = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2)
    channel, exists, member = channels_of(block, C, CG, NG, CB)
    centre, scale = statistics_of(unit, block, mean, rstd, member, C, CG, NG)
    w, b = affine_of(weight, bias, unit // units_each, weight_stride, bias_stride, channel, exists, HAS_BIAS)
    if KNOWN:
        dw, db = _known(totals, unit, units, channel, exists, C)
    else:
        dw, db = _slope_sums(x, dy, unit, 0, size, size, channel, exists, centre, scale, w, b, C, MB, CB, RELU)
        tl.store(totals + unit * C + channel, dw, mask=exists)
        tl.store(totals + (units + unit) * C + channel, db, mask=exists)
    count = size * CG * 1.0
    if MASKED:
        count = tl.load(counts + unit) * CG
    along = by_channel(by_group(dw * w, member) / count, member)
    flat = by_channel(by_group(db * w, member) / count, member)
    start, slopes, target = x + unit * size * C, dy + unit * size * C, dx + unit * size * C
    each = tl.cdiv(size, splits)
    last = tl.minimum((part + 1) * each, size)
    for at in range(part * each, last, MB):
        row = at + tl.arange(0, MB)
        inside = row < last
        seen = inside[:, None] & exists[None, :]
        normal = (load_tile(start, row, channel, seen, C) - centre[None, :]) * scale[None, :]
        slope = slope_of(slopes, row, channel, seen, normal, w, b, C, RELU)
        through_statistics = flat[None, :] + normal * along[None, :]
        if MASKED:
            through_statistics *= row_weight(mask, unit * size + row, inside, pixels)[:, None]
        out = (slope * w[None, :] - through_statistics) * scale[None, :]
        tl.store(target + row[:, None] * C + channel[None, :], out.to(dx.dtype.element_ty), mask=seen)
