"""What all GPU programs of ``channel_norm`` are made of.

A program handles NG groups of CG neighbouring channels of one unit, walking over its pixels MB at a time. Groups are
filled up to CP channels, a power of two. There are C = ``chunks`` · CM channels, CM being as much as a compiler needs
to know to fetch several at once. Argument names: ``x`` (pixels, C), ``unit`` the program's unit, ``size``
pixels of a unit, ``pixels`` of an image, ``splits`` parts that a unit is cut into. A tile is [MB, NG·CP], quantities
of a channel are vectors [NG·CP], those of a group [NG]. Tiles are folded to [MB, NG, CP] where groups matter: that
moves no value to another thread.
"""

import triton
import triton.language as tl

GENERAL = [
    *("weight", "bias", "mean", "rstd", "weight_stride", "bias_stride"),
    *("units", "size", "pixels", "wide", "splits", "units_each", "chunks"),
]
"""Arguments whose values no kernel is compiled anew for: a network has many layers, and compiling takes its time."""
WITHIN_TWO = tl.constexpr(2)
"""Value of MASKED for tiles no larger than an image."""
WHOLE_SECOND, STRIDED = tl.constexpr(1), tl.constexpr(2)
"""Values of SECOND: what comes back apart is of all pixels, or of every other one in both directions."""


@triton.jit
def place_of_program(FIRST: tl.constexpr):
    """Channel block, part and unit of a program.

    Programs start in the order of their numbers. The first to look at a tensor begin where the one before them ended,
    whose last values are still in the cache; those who look at it again do so in turn.
    """
    block, part, unit = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if FIRST:
        part = tl.num_programs(1) - 1 - part
        unit = tl.num_programs(2) - 1 - unit
    return block, part, unit.to(tl.int64)


@triton.jit
def channels_of(block, C, CG: tl.constexpr, CP: tl.constexpr, NG: tl.constexpr, V: tl.constexpr):
    """Channel numbers, and which of them exist; V of them at a time are neighbours in memory."""
    own = tl.arange(0, NG * CP)
    if CG == CP:
        channel = block * (NG * CG) + own
        exists = channel < C
    else:
        channel = (block * NG + own // CP) * CG + own % CP
        exists = (own % CP < CG) & (channel < C)
        channel = tl.max_contiguous(tl.multiple_of(channel, V), V)
    return channel, exists


@triton.jit
def load_tile(start, row, channel, seen, C):
    """Values in float32, 0 where there are none."""
    return tl.load(start + row[:, None] * C + channel[None, :], mask=seen, other=0.0).to(tl.float32)


@triton.jit
def store_tile(start, row, channel, seen, tile, C):
    """A tile, in the type of its target."""
    tl.store(start + row[:, None] * C + channel[None, :], tile.to(start.dtype.element_ty), mask=seen)


@triton.jit
def group_sums(tile, NG: tl.constexpr, CP: tl.constexpr):
    """[NG] sums over the pixels and channels of each group."""
    return tl.sum(tl.sum(tl.reshape(tile, [tile.shape[0], NG, CP]), axis=2), axis=0)


@triton.jit
def added_by_group(values, NG: tl.constexpr, CP: tl.constexpr):
    """[NG] sums of the values [NG·CP] of each group's channels."""
    return tl.sum(tl.reshape(values, [NG, CP]), axis=1)


@triton.jit
def minus(tile, values, NG: tl.constexpr, CP: tl.constexpr):
    """A tile less its groups' values [NG]."""
    folded = tl.reshape(tile, [tile.shape[0], NG, CP]) - values[None, :, None]
    return tl.reshape(folded, [tile.shape[0], NG * CP])


@triton.jit
def times(tile, values, NG: tl.constexpr, CP: tl.constexpr):
    """A tile multiplied by its groups' values [NG]."""
    folded = tl.reshape(tile, [tile.shape[0], NG, CP]) * values[None, :, None]
    return tl.reshape(folded, [tile.shape[0], NG * CP])


@triton.jit
def marked_rows(mask, unit, first, last, size, pixels, MB: tl.constexpr, MASKED: tl.constexpr):
    """[MB] which pixels of a unit, from ``first`` on, are of images that count and before ``last``."""
    row = first + tl.arange(0, MB)
    images = mask + unit * (size // pixels)
    if MASKED == WITHIN_TWO:  # images at most, so that not every pixel must look for its own
        image = first // pixels
        border = (image + 1) * pixels
        here = tl.load(images + image).to(tl.int32)
        after = tl.load(images + image + 1, mask=border < last, other=0).to(tl.int32)
        return (row < last) & (tl.where(row < border, here, after) > 0)
    return tl.load(images + row // pixels, mask=row < last, other=0).to(tl.int32) > 0


@triton.jit
def affine_of(weight, bias, particle, weight_stride, bias_stride, channel, exists, HAS_BIAS: tl.constexpr):
    """Weight and bias of a particle."""
    w = tl.load(weight + particle * weight_stride + channel, mask=exists, other=0.0)
    b = tl.zeros_like(w)
    if HAS_BIAS:
        b = tl.load(bias + particle * bias_stride + channel, mask=exists, other=0.0)
    return w, b


@triton.jit
def statistics_of(unit, block, mean, rstd, C, CG: tl.constexpr, NG: tl.constexpr):
    """Stored mean and 1/deviation [NG]."""
    group = block * NG + tl.arange(0, NG)
    place, known = unit * (C // CG) + group, group < C // CG
    return tl.load(mean + place, mask=known, other=0.0), tl.load(rstd + place, mask=known, other=0.0)


@triton.jit
def store_statistics(unit, block, mean, rstd, centre, scale, C, CG: tl.constexpr, NG: tl.constexpr):
    """Keeps mean and 1/deviation [NG] for the way back."""
    group = block * NG + tl.arange(0, NG)
    place = unit * (C // CG) + group
    tl.store(mean + place, centre, mask=group < C // CG)
    tl.store(rstd + place, scale, mask=group < C // CG)


@triton.jit
def signs_of(signs, pixel, block, C, CG: tl.constexpr, CP: tl.constexpr, NG: tl.constexpr):
    """Where the signs of a tile are kept, eight to a byte, and which of these bytes exist."""
    width = (C // CG * CP + 7) // 8
    byte = block * (NG * CP // 8) + tl.arange(0, NG * CP // 8)
    return signs + pixel[:, None] * width + byte[None, :], (byte < width)[None, :]


@triton.jit
def pack(positive):
    """[MB, N] yes or no, eight to a byte."""
    eights = tl.reshape(positive.to(tl.int32), [positive.shape[0], positive.shape[1] // 8, 8])
    return tl.sum(eights << tl.arange(0, 8)[None, None, :], axis=2).to(tl.uint8)


@triton.jit
def unpack(packed):
    """The reverse."""
    bits = (packed.to(tl.int32)[:, :, None] >> tl.arange(0, 8)[None, None, :]) & 1
    return tl.reshape(bits, [packed.shape[0], packed.shape[1] * 8]) == 1


@triton.jit
def activated(
    out, branch, signs, start, row, inside, block,
    C, CG: tl.constexpr, CP: tl.constexpr, NG: tl.constexpr,
    RELU: tl.constexpr, SKIP: tl.constexpr,
):  # fmt: skip
    """What follows the affine: a residual branch that is added, a ReLU. What was on is kept for the way back."""
    if SKIP:
        out += branch.to(tl.float32)
        place, there = signs_of(signs, start + row, block, C, CG, CP, NG)
        tl.store(place, pack(out > 0), mask=inside[:, None] & there)
    if RELU:
        out = tl.where(out <= 0, 0.0, out)  # which keeps NaN
    return out


@triton.jit
def second_tile(second, start, row, channel, seen, pixels, wide, C, SECOND: tl.constexpr):
    """∂y that comes back apart: of all pixels, or of every other one of every other line."""
    if SECOND == STRIDED:
        line, column = row % pixels // wide, row % pixels % wide
        pixels_left, wide_left = (pixels // wide + 1) // 2 * ((wide + 1) // 2), (wide + 1) // 2
        seen = seen & ((line % 2 == 0) & (column % 2 == 0))[:, None]
        start = start // pixels * pixels_left
        row = row // pixels * pixels_left + line // 2 * wide_left + column // 2
    return load_tile(second + start * C, row, channel, seen, C)


@triton.jit
def slope_of(
    dy, second, signs, dskip, start, row, inside, channel, seen, block, normal, w, b, pixels, wide,
    C, CG: tl.constexpr, CP: tl.constexpr, NG: tl.constexpr,
    RELU: tl.constexpr, SKIP: tl.constexpr, SECOND: tl.constexpr,
):  # fmt: skip
    """∂ of the affine's output: ∂y, 0 where the activation was off; the residual branch gets the same."""
    slope = load_tile(dy + start * C, row, channel, seen, C)
    if SECOND:
        slope += second_tile(second, start, row, channel, seen, pixels, wide, C, SECOND)
    if SKIP:
        place, there = signs_of(signs, start + row, block, C, CG, CP, NG)
        slope = tl.where(unpack(tl.load(place, mask=inside[:, None] & there, other=0)), slope, 0.0)
        store_tile(dskip + start * C, row, channel, seen, slope, C)
    elif RELU:
        slope = tl.where(normal * w[None, :] + b[None, :] > 0, slope, 0.0)
    return slope
