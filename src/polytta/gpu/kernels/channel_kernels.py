"""The GPU programs of ``channel_norm`` for units of any size: what they compute is said there.

Names are those of ``channel_tiles``. With FIRST a program takes the sums of its unit itself; otherwise other programs
have taken those of its parts, and it adds them. Loops fetch the next tiles while they work on one; only for ∂x of units
that are split it is better to have more programs at a time.
"""

import triton
import triton.language as tl

from polytta.gpu.kernels.channel_tiles import (
    GENERAL,
    activated,
    affine_of,
    channels_of,
    group_sums,
    load_tile,
    marked_rows,
    minus,
    place_of_program,
    slope_of,
    statistics_of,
    store_statistics,
    store_tile,
    times,
)

_AHEAD = tl.constexpr(3)
_PARTS = tl.constexpr(16)
"""Parts whose sums are fetched at a time: more would take registers from the loop that follows."""


@triton.jit
def _parts(parts, unit, units, splits, channel, exists, C, N: tl.constexpr):
    """Two sums of the parts of a unit, stored as (2, unit, part, channel), still to be added along the tile."""
    first = tl.zeros([_PARTS, N], tl.float32)
    second = tl.zeros([_PARTS, N], tl.float32)
    for at in tl.range(0, splits, _PARTS):
        part = at + tl.arange(0, _PARTS)
        place = (unit * splits + part)[:, None] * C + channel[None, :]
        known = (part < splits)[:, None] & exists[None, :]
        first += tl.load(parts + place, mask=known, other=0.0)
        second += tl.load(parts + units * splits * C + place, mask=known, other=0.0)
    return first, second


@triton.jit
def _store_part(parts, unit, units, part, splits, channel, exists, first, second, C):
    place = (unit * splits + part) * C + channel
    tl.store(parts + place, tl.sum(first, axis=0), mask=exists)
    tl.store(parts + units * splits * C + place, tl.sum(second, axis=0), mask=exists)


@triton.jit
def _shift(x, unit, size, block, C, CG: tl.constexpr, NG: tl.constexpr):
    """[NG] first value of each group, near enough to its mean to keep sums of squares accurate."""
    channel = tl.minimum((block * NG + tl.arange(0, NG)) * CG, C - 1)
    return tl.load(x + unit * size * C + channel).to(tl.float32)


@triton.jit
def _sums(
    x, mask, unit, first, last, size, pixels, channel, exists, shift,
    C, CP: tl.constexpr, NG: tl.constexpr, MB: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Over pixels first..last of a unit: sums of x - shift and of its square, still to be added along the tile."""
    one = tl.zeros([MB, NG * CP], tl.float32)
    two = tl.zeros([MB, NG * CP], tl.float32)
    start = unit * size
    for at in tl.range(first, last, MB, num_stages=_AHEAD):
        row = at + tl.arange(0, MB)
        seen = (row < last)[:, None] & exists[None, :]
        value = load_tile(x + start * C, row, channel, seen, C)
        if MASKED:
            marked = marked_rows(mask, unit, at, last, size, pixels, MB, MASKED)
            seen = marked[:, None] & exists[None, :]
        difference = tl.where(seen, minus(value, shift, NG, CP), 0.0)
        one += difference
        two += difference * difference
    return one, two


@triton.jit
def _slope_sums(
    x, dy, second, signs, dskip, unit, first, last, size, pixels, wide, channel, exists, block, centre, scale, w, b,
    C, CG: tl.constexpr, CP: tl.constexpr, NG: tl.constexpr, MB: tl.constexpr,
    RELU: tl.constexpr, SKIP: tl.constexpr, SECOND: tl.constexpr,
):  # fmt: skip
    """Over pixels first..last of a unit: sums of ∂y x̂ and of ∂y, still to be added along the tile."""
    dw = tl.zeros([MB, NG * CP], tl.float32)
    db = tl.zeros([MB, NG * CP], tl.float32)
    start = unit * size
    for at in tl.range(first, last, MB, num_stages=_AHEAD):
        row = at + tl.arange(0, MB)
        inside = row < last
        seen = inside[:, None] & exists[None, :]
        normal = times(minus(load_tile(x + start * C, row, channel, seen, C), centre, NG, CP), scale, NG, CP)
        slope = slope_of(
            dy, second, signs, dskip, start, row, inside, channel, seen, block, normal, w, b, pixels, wide,
            C, CG, CP, NG, RELU, SKIP, SECOND,
        )  # fmt: skip
        dw += slope * normal
        db += slope
    return dw, db


@triton.jit(do_not_specialize=GENERAL)
def sum_kernel(
    x, mask, parts, units, size, pixels, splits, chunks,
    CM: tl.constexpr, CG: tl.constexpr, CP: tl.constexpr, NG: tl.constexpr, V: tl.constexpr, MB: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """Sums of one part of a unit."""
    C = chunks * CM
    block, part, unit = place_of_program(FIRST=True)
    channel, exists = channels_of(block, C, CG, CP, NG, V)
    each = tl.cdiv(size, splits)
    last = tl.minimum((part + 1) * each, size)
    shift = _shift(x, unit, size, block, C, CG, NG)
    one, two = _sums(x, mask, unit, part * each, last, size, pixels, channel, exists, shift, C, CP, NG, MB, MASKED)
    _store_part(parts, unit, units, part, splits, channel, exists, one, two, C)


@triton.jit(do_not_specialize=GENERAL)
def forward_kernel(
    x, y, skip, signs, mask, counts, weight, bias, mean, rstd, parts, units, size, pixels, splits, units_each,
    weight_stride, bias_stride, eps, chunks,
    CM: tl.constexpr, CG: tl.constexpr, CP: tl.constexpr, NG: tl.constexpr, V: tl.constexpr, MB: tl.constexpr,
    FIRST: tl.constexpr, RELU: tl.constexpr, SKIP: tl.constexpr, HAS_BIAS: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """Statistics of a unit, then one part's output."""
    C = chunks * CM
    block, part, unit = place_of_program(FIRST)
    channel, exists = channels_of(block, C, CG, CP, NG, V)
    shift = _shift(x, unit, size, block, C, CG, NG)
    if FIRST:
        one, two = _sums(x, mask, unit, 0, size, size, pixels, channel, exists, shift, C, CP, NG, MB, MASKED)
    else:
        one, two = _parts(parts, unit, units, splits, channel, exists, C, NG * CP)
    count = size * CG * 1.0
    if MASKED:
        count = tl.load(counts + unit) * pixels * CG
    away = group_sums(one, NG, CP) / count
    scale = 1 / tl.sqrt(tl.maximum(group_sums(two, NG, CP) / count - away * away, 0.0) + eps)
    centre = shift + away
    if part == 0:
        store_statistics(unit, block, mean, rstd, centre, scale, C, CG, NG)
    w, b = affine_of(weight, bias, unit // units_each, weight_stride, bias_stride, channel, exists, HAS_BIAS)
    start = unit * size
    each = tl.cdiv(size, tl.num_programs(1))
    last = tl.minimum((part + 1) * each, size)
    for at in tl.range(part * each, last, MB, num_stages=_AHEAD):
        row = at + tl.arange(0, MB)
        inside = row < last
        seen = inside[:, None] & exists[None, :]
        value = load_tile(x + start * C, row, channel, seen, C)
        branch = load_tile(skip + start * C, row, channel, seen, C) if SKIP else value
        out = times(minus(value, centre, NG, CP), scale, NG, CP) * w[None, :] + b[None, :]
        out = activated(out, branch, signs, start, row, inside, block, C, CG, CP, NG, RELU, SKIP)
        store_tile(y + start * C, row, channel, seen, out, C)


@triton.jit(do_not_specialize=GENERAL)
def slope_sum_kernel(
    x, dy, second, signs, dskip, weight, bias, mean, rstd, parts, units, size, pixels, wide,
    splits, units_each, weight_stride, bias_stride, chunks,
    CM: tl.constexpr, CG: tl.constexpr, CP: tl.constexpr, NG: tl.constexpr, V: tl.constexpr, MB: tl.constexpr,
    RELU: tl.constexpr, SKIP: tl.constexpr, SECOND: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """Sums of the slopes of one part of a unit."""
    C = chunks * CM
    block, part, unit = place_of_program(FIRST=True)
    channel, exists = channels_of(block, C, CG, CP, NG, V)
    centre, scale = statistics_of(unit, block, mean, rstd, C, CG, NG)
    w, b = affine_of(weight, bias, unit // units_each, weight_stride, bias_stride, channel, exists, HAS_BIAS)
    each = tl.cdiv(size, splits)
    last = tl.minimum((part + 1) * each, size)
    dw, db = _slope_sums(
        x, dy, second, signs, dskip, unit, part * each, last, size, pixels, wide, channel, exists, block,
        centre, scale, w, b, C, CG, CP, NG, MB, RELU, SKIP, SECOND,
    )  # fmt: skip
    _store_part(parts, unit, units, part, splits, channel, exists, dw, db, C)


@triton.jit(do_not_specialize=GENERAL)
def backward_kernel(
    x, dy, second, signs, dskip, dx, mask, counts, weight, bias, mean, rstd, parts, totals, units, size, pixels, wide,
    splits, units_each, weight_stride, bias_stride, chunks,
    CM: tl.constexpr, CG: tl.constexpr, CP: tl.constexpr, NG: tl.constexpr, V: tl.constexpr, MB: tl.constexpr,
    FIRST: tl.constexpr, RELU: tl.constexpr, SKIP: tl.constexpr, SECOND: tl.constexpr,
    HAS_BIAS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Sums of the slopes of a unit, then one part's ∂x."""
    C = chunks * CM
    block, part, unit = place_of_program(FIRST)
    channel, exists = channels_of(block, C, CG, CP, NG, V)
    centre, scale = statistics_of(unit, block, mean, rstd, C, CG, NG)
    w, b = affine_of(weight, bias, unit // units_each, weight_stride, bias_stride, channel, exists, HAS_BIAS)
    if FIRST:
        dw, db = _slope_sums(
            x, dy, second, signs, dskip, unit, 0, size, size, pixels, wide, channel, exists, block,
            centre, scale, w, b, C, CG, CP, NG, MB, RELU, SKIP, SECOND,
        )  # fmt: skip
        # What this program has just stored for the residual branch, it reads below.
        tl.debug_barrier()
    else:
        dw, db = _parts(parts, unit, units, splits, channel, exists, C, NG * CP)
    if part == 0:
        _store_part(totals, unit, units, 0, 1, channel, exists, dw, db, C)
    count = size * CG * 1.0
    if MASKED:
        count = tl.load(counts + unit) * pixels * CG
    along = group_sums(dw * w[None, :], NG, CP) / count
    flat = group_sums(db * w[None, :], NG, CP) / count
    start = unit * size
    slopes = dskip if SKIP else dy
    each = tl.cdiv(size, tl.num_programs(1))
    last = tl.minimum((part + 1) * each, size)
    for at in tl.range(part * each, last, MB, num_stages=_AHEAD if FIRST else 1):
        row = at + tl.arange(0, MB)
        inside = row < last
        seen = inside[:, None] & exists[None, :]
        normal = times(minus(load_tile(x + start * C, row, channel, seen, C), centre, NG, CP), scale, NG, CP)
        slope = slope_of(
            slopes, second, signs, dskip, start, row, inside, channel, seen, block, normal, w, b, pixels, wide,
            C, CG, CP, NG, RELU=RELU and not SKIP, SKIP=False, SECOND=False,
        )  # fmt: skip
        through_statistics = minus(times(normal, along, NG, CP), -flat, NG, CP)
        if MASKED:
            marked = marked_rows(mask, unit, at, last, size, pixels, MB, MASKED)
            through_statistics = tl.where(marked[:, None], through_statistics, 0.0)
        out = times(slope * w[None, :] - through_statistics, scale, NG, CP)
        store_tile(dx + start * C, row, channel, seen, out, C)
