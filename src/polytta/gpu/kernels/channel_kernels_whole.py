"""The GPU programs of ``channel_norm`` for units small enough to be held: every value is read once.

Names are those of ``channel_tiles``; MB is at least the size of a unit.
"""

import triton
import triton.language as tl

from polytta.gpu.kernels.channel_tiles import (
    GENERAL,
    activated,
    added_by_group,
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


@triton.jit(do_not_specialize=GENERAL)
def whole_forward_kernel(
    x, y, skip, signs, mask, counts, weight, bias, mean, rstd, size, pixels, units_each,
    weight_stride, bias_stride, eps, chunks,
    CM: tl.constexpr, CG: tl.constexpr, CP: tl.constexpr, NG: tl.constexpr, V: tl.constexpr, MB: tl.constexpr,
    RELU: tl.constexpr, SKIP: tl.constexpr, HAS_BIAS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Statistics and output of a unit."""
    C = chunks * CM
    block, _, unit = place_of_program(FIRST=True)
    channel, exists = channels_of(block, C, CG, CP, NG, V)
    w, b = affine_of(weight, bias, unit // units_each, weight_stride, bias_stride, channel, exists, HAS_BIAS)
    row = tl.arange(0, MB)
    inside = row < size
    seen = inside[:, None] & exists[None, :]
    start = unit * size
    value = load_tile(x + start * C, row, channel, seen, C)
    branch = value
    if SKIP:  # fetched while sums are taken, and left in its own type: that needs half the registers
        branch = tl.load(skip + start * C + row[:, None] * C + channel[None, :], mask=seen, other=0.0)
    count = size * CG * 1.0
    counted = value
    if MASKED:
        count = tl.load(counts + unit) * pixels * CG
        marked = marked_rows(mask, unit, 0, size, size, pixels, MB, MASKED)[:, None]
        counted = tl.where(marked, value, 0.0)
    centre = group_sums(counted, NG, CP) / count
    difference = tl.where(seen, minus(value, centre, NG, CP), 0.0)
    square = difference * difference
    if MASKED:
        square = tl.where(marked, square, 0.0)
    scale = 1 / tl.sqrt(group_sums(square, NG, CP) / count + eps)
    store_statistics(unit, block, mean, rstd, centre, scale, C, CG, NG)
    out = times(difference, scale, NG, CP) * w[None, :] + b[None, :]
    out = activated(out, branch, signs, start, row, inside, block, C, CG, CP, NG, RELU, SKIP)
    store_tile(y + start * C, row, channel, seen, out, C)


@triton.jit(do_not_specialize=GENERAL)
def whole_backward_kernel(
    x, dy, second, signs, dskip, dx, mask, counts, weight, bias, mean, rstd, totals, units, size, pixels, wide,
    units_each, weight_stride, bias_stride, chunks,
    CM: tl.constexpr, CG: tl.constexpr, CP: tl.constexpr, NG: tl.constexpr, V: tl.constexpr, MB: tl.constexpr,
    RELU: tl.constexpr, SKIP: tl.constexpr, SECOND: tl.constexpr, HAS_BIAS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Sums of the slopes of a unit, and its ∂x."""
    C = chunks * CM
    block, _, unit = place_of_program(FIRST=True)
    channel, exists = channels_of(block, C, CG, CP, NG, V)
    centre, scale = statistics_of(unit, block, mean, rstd, C, CG, NG)
    w, b = affine_of(weight, bias, unit // units_each, weight_stride, bias_stride, channel, exists, HAS_BIAS)
    row = tl.arange(0, MB)
    inside = row < size
    seen = inside[:, None] & exists[None, :]
    start = unit * size
    value = load_tile(x + start * C, row, channel, seen, C)
    normal = tl.where(seen, times(minus(value, centre, NG, CP), scale, NG, CP), 0.0)
    slope = slope_of(
        dy, second, signs, dskip, start, row, inside, channel, seen, block, normal, w, b, pixels, wide,
        C, CG, CP, NG, RELU, SKIP, SECOND,
    )  # fmt: skip
    count = size * CG * 1.0
    if MASKED:
        count = tl.load(counts + unit) * pixels * CG
    dw, db = tl.sum(slope * normal, axis=0), tl.sum(slope, axis=0)
    along, flat = added_by_group(dw * w, NG, CP) / count, added_by_group(db * w, NG, CP) / count
    through_statistics = minus(times(normal, along, NG, CP), -flat, NG, CP)
    if MASKED:
        marked = marked_rows(mask, unit, 0, size, size, pixels, MB, MASKED)
        through_statistics = tl.where(marked[:, None], through_statistics, 0.0)
    store_tile(dx + start * C, row, channel, seen, times(slope * w[None, :] - through_statistics, scale, NG, CP), C)
    tl.store(totals + unit * C + channel, dw, mask=exists)
    tl.store(totals + (units + unit) * C + channel, db, mask=exists)
