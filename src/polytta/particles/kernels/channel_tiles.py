"""What all GPU programs of ``channel_norm`` are made of.

A program handles CB neighbouring channels (whole groups) of one unit, walking over its pixels MB at a time. Argument
names: ``x`` (pixels, C), ``unit`` the program's unit, ``size`` pixels of a unit, ``pixels`` of an image, ``splits``
parts that a unit is cut into. Quantities of a channel are vectors [CB], those of a group [NG].
"""

import triton
import triton.language as tl


@triton.jit
def channels_of(block, C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr, CB: tl.constexpr):
    """Channel numbers [CB], which of them exist, and which group each belongs to [CB, NG]."""
    own = tl.arange(0, CB)
    channel = block * (NG * CG) + own
    exists = (own < NG * CG) & (channel < C)
    member = (own[:, None] // CG == tl.arange(0, NG)[None, :]) & exists[:, None]
    return channel, exists, member


@triton.jit
def by_group(values, member):
    """Sums over the channels of each group, [CB] to [NG]."""
    return tl.sum(tl.where(member, values[:, None], 0.0), axis=0)


@triton.jit
def by_channel(values, member):
    """Each channel's group value, [NG] to [CB]."""
    return tl.sum(tl.where(member, values[None, :], 0.0), axis=1)


@triton.jit
def row_weight(mask, row, inside, pixels):
    """[MB] 1 for pixels of images that count for statistics."""
    return tl.load(mask + row // pixels, mask=inside, other=0).to(tl.float32)


@triton.jit
def load_tile(start, row, channel, seen, C: tl.constexpr):
    """[MB, CB] values in float32, 0 where there are none."""
    return tl.load(start + row[:, None] * C + channel[None, :], mask=seen, other=0.0).to(tl.float32)


@triton.jit
def affine_of(weight, bias, particle, weight_stride, bias_stride, channel, exists, HAS_BIAS: tl.constexpr):
    """Weight and bias [CB] of a particle."""
    w = tl.load(weight + particle * weight_stride + channel, mask=exists, other=0.0)
    b = tl.zeros_like(w)
    if HAS_BIAS:
        b = tl.load(bias + particle * bias_stride + channel, mask=exists, other=0.0)
    return w, b


@triton.jit
def statistics_of(unit, block, mean, rstd, member, C: tl.constexpr, CG: tl.constexpr, NG: tl.constexpr):
    """Stored mean and 1/deviation of each channel's group."""
    group = block * NG + tl.arange(0, NG)
    known = group < C // CG
    centre = tl.load(mean + unit * (C // CG) + group, mask=known, other=0.0)
    scale = tl.load(rstd + unit * (C // CG) + group, mask=known, other=0.0)
    return by_channel(centre, member), by_channel(scale, member)


@triton.jit
def slope_of(slopes, row, channel, seen, normal, w, b, C: tl.constexpr, RELU: tl.constexpr):
    """∂y of a tile, 0 where the activation was off."""
    slope = load_tile(slopes, row, channel, seen, C)
    if RELU:
        slope = tl.where(normal * w[None, :] + b[None, :] > 0, slope, 0.0)
    return slope
