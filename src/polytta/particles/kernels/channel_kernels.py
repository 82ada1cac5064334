"""The GPU programs of ``channel_norm``: what they compute is said there.

A program handles CB neighbouring channels (whole groups) of one unit, walking over its pixels MB at a time. Argument
names: ``x`` (pixels, C), ``unit`` the program's unit, ``size`` pixels of a unit, ``pixels`` of an image, ``splits``
parts that a unit is cut into. Quantities of a channel are vectors [CB], those of a group [NG].
"""

import triton
import triton.language as tl


@triton.jit
def _channels(block, C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr, CB: tl.constexpr):
    """Channel numbers [CB], which of them exist, and which group each belongs to [CB, NG]."""
    own = tl.arange(0, CB)
    channel = block * (NG * CG) + own
    exists = (own < NG * CG) & (channel < C)
    member = (own[:, None] // CG == tl.arange(0, NG)[None, :]) & exists[:, None]
    return channel, exists, member


@triton.jit
def _by_group(values, member):
    """Sums over the channels of each group, [CB] to [NG]."""
    return tl.sum(tl.where(member, values[:, None], 0.0), axis=0)


@triton.jit
def _by_channel(values, member):
    """Each channel's group value, [NG] to [CB]."""
    return tl.sum(tl.where(member, values[None, :], 0.0), axis=1)


@triton.jit
def _row_weight(mask, row, inside, pixels):
    """[MB] 1 for pixels of images that count for statistics."""
    return tl.load(mask + row // pixels, mask=inside, other=0).to(tl.float32)


@triton.jit
def _load(start, row, channel, seen, C: tl.constexpr):
    return tl.load(start + row[:, None] * C + channel[None, :], mask=seen, other=0.0).to(tl.float32)


@triton.jit
def _affine(weight, bias, particle, weight_stride, bias_stride, channel, exists, HAS_BIAS: tl.constexpr):
    w = tl.load(weight + particle * weight_stride + channel, mask=exists, other=0.0)
    b = tl.zeros_like(w)
    if HAS_BIAS:
        b = tl.load(bias + particle * bias_stride + channel, mask=exists, other=0.0)
    return w, b


@triton.jit
def _statistics_of(unit, block, mean, rstd, member, C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr):
    """Stored mean and 1/deviation of each channel's group."""
    group = block * NG + tl.arange(0, NG)
    known = group < C // CG
    centre = tl.load(mean + unit * (C // CG) + group, mask=known, other=0.0)
    scale = tl.load(rstd + unit * (C // CG) + group, mask=known, other=0.0)
    return _by_channel(centre, member), _by_channel(scale, member)


@triton.jit
def _total(parts, unit, splits, channel, exists, C: tl.constexpr, SP: tl.constexpr):
    """[CB] sums over the parts of a unit, which lie as (unit, part, channel)."""
    part = tl.arange(0, SP)
    place = (unit * splits + part)[:, None] * C + channel[None, :]
    return tl.sum(tl.load(parts + place, mask=(part < splits)[:, None] & exists[None, :], other=0.0), axis=0)


@triton.jit
def _shift(x, unit, size, block, member, C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr):
    """First value of each channel's group, near enough to its mean to keep sums of squares accurate."""
    channel = tl.minimum((block * NG + tl.arange(0, NG)) * CG, C - 1)
    return _by_channel(tl.load(x + unit * size * C + channel).to(tl.float32), member)


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
        difference = tl.where(seen, _load(start, row, channel, seen, C) - shift[None, :], 0.0)
        counted = difference
        if MASKED:
            counted = difference * _row_weight(mask, unit * size + row, inside, pixels)[:, None]
        one += counted
        two += counted * difference
    return tl.sum(one, axis=0), tl.sum(two, axis=0)


@triton.jit
def _slope(slopes, row, channel, seen, normal, w, b, C: tl.constexpr, RELU: tl.constexpr):
    """∂y of a tile, 0 where the activation was off."""
    slope = _load(slopes, row, channel, seen, C)
    if RELU:
        slope = tl.where(normal * w[None, :] + b[None, :] > 0, slope, 0.0)
    return slope


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
        normal = (_load(start, row, channel, seen, C) - mean[None, :]) * scale[None, :]
        slope = _slope(slopes, row, channel, seen, normal, w, b, C, RELU)
        dw += slope * normal
        db += slope
    return tl.sum(dw, axis=0), tl.sum(db, axis=0)


@triton.jit
def sum_kernel(
    x, mask, parts, units, size, pixels, splits,
    C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr, CB: tl.constexpr, MB: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Sums of one part of a unit."""
    unit, block, part = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    channel, exists, member = _channels(block, C, CG, NG, CB)
    each = tl.cdiv(size, splits)
    shift = _shift(x, unit, size, block, member, C, CG, NG)
    last = tl.minimum((part + 1) * each, size)
    one, two = _sums(x, mask, unit, part * each, last, size, pixels, channel, exists, shift, C, MB, CB, MASKED)
    place = (unit * splits + part) * C + channel
    tl.store(parts + place, one, mask=exists)
    tl.store(parts + units * splits * C + place, two, mask=exists)


@triton.jit
def forward_kernel(
    x, y, mask, counts, weight, bias, mean, rstd, parts, units, size, pixels, splits, units_each,
    weight_stride, bias_stride, eps,
    C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr, CB: tl.constexpr, MB: tl.constexpr, SP: tl.constexpr,
    RELU: tl.constexpr, HAS_BIAS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Statistics of a unit (taken here, or added up from its parts), then one part's output."""
    unit, block, part = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    channel, exists, member = _channels(block, C, CG, NG, CB)
    shift = _shift(x, unit, size, block, member, C, CG, NG)
    if SP == 1:
        one, two = _sums(x, mask, unit, 0, size, size, pixels, channel, exists, shift, C, MB, CB, MASKED)
    else:
        one = _total(parts, unit, splits, channel, exists, C, SP)
        two = _total(parts + units * splits * C, unit, splits, channel, exists, C, SP)
    count = size * CG * 1.0
    if MASKED:
        count = tl.load(counts + unit) * CG
    away = _by_group(one, member) / count
    deviation = 1 / tl.sqrt(tl.maximum(_by_group(two, member) / count - away * away, 0.0) + eps)
    centre, scale = shift + _by_channel(away, member), _by_channel(deviation, member)
    if part == 0:
        group = block * NG + tl.arange(0, NG)
        first_of_group = member & (tl.arange(0, CB)[:, None] % CG == 0)
        place = unit * (C // CG) + group
        tl.store(mean + place, _by_group(centre, first_of_group), mask=group < C // CG)
        tl.store(rstd + place, deviation, mask=group < C // CG)
    w, b = _affine(weight, bias, unit // units_each, weight_stride, bias_stride, channel, exists, HAS_BIAS)
    start, target = x + unit * size * C, y + unit * size * C
    each = tl.cdiv(size, splits)
    last = tl.minimum((part + 1) * each, size)
    for at in range(part * each, last, MB):
        row = at + tl.arange(0, MB)
        seen = (row < last)[:, None] & exists[None, :]
        value = _load(start, row, channel, seen, C)
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
    unit, block, part = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    channel, exists, member = _channels(block, C, CG, NG, CB)
    centre, scale = _statistics_of(unit, block, mean, rstd, member, C, CG, NG)
    w, b = _affine(weight, bias, unit // units_each, weight_stride, bias_stride, channel, exists, HAS_BIAS)
    each = tl.cdiv(size, splits)
    last = tl.minimum((part + 1) * each, size)
    dw, db = _slope_sums(x, dy, unit, part * each, last, size, channel, exists, centre, scale, w, b, C, MB, CB, RELU)
    place = (unit * splits + part) * C + channel
    tl.store(parts + place, dw, mask=exists)
    tl.store(parts + units * splits * C + place, db, mask=exists)


@triton.jit
def backward_kernel(
    x, dy, dx, mask, counts, weight, bias, mean, rstd, parts, units, size, pixels, splits, units_each,
    weight_stride, bias_stride,
    C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr, CB: tl.constexpr, MB: tl.constexpr, SP: tl.constexpr,
    RELU: tl.constexpr, HAS_BIAS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Sums of the slopes of a unit (taken here, or added up from its parts), then one part's ∂x."""
    unit, block, part = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    channel, exists, member = _channels(block, C, CG, NG, CB)
    centre, scale = _statistics_of(unit, block, mean, rstd, member, C, CG, NG)
    w, b = _affine(weight, bias, unit // units_each, weight_stride, bias_stride, channel, exists, HAS_BIAS)
    if SP == 1:
        dw, db = _slope_sums(x, dy, unit, 0, size, size, channel, exists, centre, scale, w, b, C, MB, CB, RELU)
        tl.store(parts + unit * C + channel, dw, mask=exists)
        tl.store(parts + (units + unit) * C + channel, db, mask=exists)
    else:
        dw = _total(parts, unit, splits, channel, exists, C, SP)
        db = _total(parts + units * splits * C, unit, splits, channel, exists, C, SP)
    count = size * CG * 1.0
    if MASKED:
        count = tl.load(counts + unit) * CG
    along = _by_channel(_by_group(dw * w, member) / count, member)
    flat = _by_channel(_by_group(db * w, member) / count, member)
    start, slopes, target = x + unit * size * C, dy + unit * size * C, dx + unit * size * C
    each = tl.cdiv(size, splits)
    last = tl.minimum((part + 1) * each, size)
    for at in range(part * each, last, MB):
        row = at + tl.arange(0, MB)
        inside = row < last
        seen = inside[:, None] & exists[None, :]
        normal = (_load(start, row, channel, seen, C) - centre[None, :]) * scale[None, :]
        slope = _slope(slopes, row, channel, seen, normal, w, b, C, RELU)
        through_statistics = flat[None, :] + normal * along[None, :]
        if MASKED:
            through_statistics *= _row_weight(mask, unit * size + row, inside, pixels)[:, None]
        out = (slope * w[None, :] - through_statistics) * scale[None, :]
        tl.store(target + row[:, None] * C + channel[None, :], out.to(dx.dtype.element_ty), mask=seen)
