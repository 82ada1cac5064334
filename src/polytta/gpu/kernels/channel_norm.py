r"""GroupNorm, InstanceNorm and BatchNorm of channels-last images, an affine per particle, a residual branch, a ReLU.

All three are one computation. The image tensor is a matrix of (pixels, channels); consecutive pixels form *units* that
share statistics: one image for GroupNorm, all images of one particle for BatchNorm. With S the channels of a unit that
are normalized together, k the particle of the unit and s the residual branch:

    y = relu((x - mean_S) / √(var_S + ε) · w_k + b_k + s)
    ∂s = ∂y · [y > 0],   ∂w_k = Σ ∂s x̂,   ∂b_k = Σ ∂s
    ∂x = (ĝ - mean_S(ĝ) - x̂ mean_S(ĝ x̂)) / √(var_S + ε),   ĝ = w · ∂s

A unit too large for one program is split, the sums of the parts being added in a fixed order. With a mask only marked
images count for the statistics of BatchNorm (and only they get the second and third term of ∂x).
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from polytta.gpu.kernels.channel_kernels import backward_kernel, forward_kernel, slope_sum_kernel, sum_kernel
from polytta.gpu.kernels.channel_kernels_whole import whole_backward_kernel, whole_forward_kernel
from polytta.gpu.kernels.channel_tiles import STRIDED, WHOLE_SECOND, WITHIN_TWO
from polytta.gpu.kernels.layout import channels_last

ENOUGH = 528
"""Programs that keep a large GPU busy: four per multiprocessor."""
WHOLE = 32768
"""Bytes of a unit's channels up to which a program holds all of them, which asks for several times as many."""
WIDTH = 32
"""Neighbouring channels a program reads where there is enough work, so that memory comes in whole sectors."""
WIDER = 64
"""The same for large units, where there is enough work all the more."""
EIGHT = 8
"""Fewest channels of a program: their signs fill a byte."""
MOST_SPLITS = 128
"""Parts whose sums every program of a unit adds again."""


@dataclass(frozen=True)
class _Plan:
    """How a tensor is cut into programs.

    Attributes:
        units: number of statistical units.
        size: pixels of a unit.
        pixels: pixels of an image.
        channels: C.
        blocks: programs along the channels.
        splits: parts of a unit whose sums are taken apart.
        pieces: parts of a unit that are computed apart.
        whole: whether a program holds its part of a unit.
        warps: of 32 threads each, that run a program.
        constants: sizes known when a kernel is compiled.
    """

    units: int
    size: int
    pixels: int
    channels: int
    blocks: int
    splits: int
    pieces: int
    whole: bool
    warps: int
    constants: dict[str, int]

    @classmethod
    def of(cls, x: Tensor, units: int, together: int, *, forward: bool, branch: bool) -> "_Plan":
        images, channels, pixels = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
        size, padded = images // units * pixels, int(triton.next_power_of_2(together))

        def blocks_of(groups: int) -> int:
            return int(triton.cdiv(channels, groups * together))

        least, held = max(1, EIGHT // padded), WHOLE // x.element_size()
        groups = _power_between(least, WIDTH // padded, channels // together)
        rows = int(triton.next_power_of_2(size))
        few = units * blocks_of(groups) < ENOUGH // 4
        while groups > least and few:
            groups //= 2
            few = units * blocks_of(groups) < ENOUGH // 4 or rows * groups * padded > held
        if not (whole := rows * groups * padded <= held):
            groups = _power_between(least, WIDER // padded, channels // together)
        programs = units * blocks_of(groups)
        split = not whole and programs < ENOUGH // 2
        tile, each = _tile(forward=forward, whole=whole, split=split, crowded=branch or padded != together)
        rows = rows if whole else max(1, tile // (groups * padded))
        # A part should be worth starting a program for and adding its sums, unless that leaves too few programs.
        tiles = 8 if programs * size >= 8 * rows * ENOUGH // 2 else 2
        splits = int(min(MOST_SPLITS, ENOUGH // programs, triton.cdiv(size, tiles * rows))) if split else 1
        pieces = int(min(2 * ENOUGH // programs, triton.cdiv(size, 2 * rows))) if splits > 1 else 1
        warps = min(16, max(1, rows * groups * padded // (32 * each)))
        vector = math.gcd(together, 8)
        multiple = math.gcd(channels, 16)
        constants = {"CM": multiple, "CG": together, "CP": padded, "NG": groups, "V": vector, "MB": rows}
        return cls(units, size, pixels, channels, blocks_of(groups), splits, pieces, whole, warps, constants)

    @property
    def sum_grid(self) -> tuple[int, int, int]:
        """Programs that take sums."""
        # Neighbouring channels one after the other: what one program leaves of a cache line, the next one uses.
        return self.blocks, self.splits, self.units

    @property
    def grid(self) -> tuple[int, int, int]:
        """All others."""
        return self.blocks, self.pieces, self.units

    @property
    def bytes(self) -> int:
        """For the signs of one pixel."""
        groups = self.channels // self.constants["CG"]
        return -(-groups * self.constants["CP"] // EIGHT)

    @property
    def chunks(self) -> int:
        """As the kernels count channels."""
        return self.channels // self.constants["CM"]

    @property
    def options(self) -> dict[str, int]:
        """What every kernel is compiled with."""
        return {**self.constants, "num_warps": self.warps}

    def masked(self, mask: Tensor | None) -> int:
        """What the kernels are compiled with that look at a mask."""
        return 0 if mask is None else WITHIN_TWO.value if self.constants["MB"] <= self.pixels else 1

    @property
    def split_options(self) -> dict[str, int]:
        """What those kernels are compiled with that may find the sums of parts."""
        return {**self.options, "FIRST": self.splits == 1}


class _ChannelNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        skip: Tensor | None,
        mask: Tensor | None,
        counts: Tensor | None,
        units: int,
        together: int,
        eps: float,
        relu: bool,
    ) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        plan = _Plan.of(x, units, together, forward=True, branch=skip is not None)
        y = torch.empty_like(x)
        mean, rstd = x.new_empty((2, units, x.shape[1] // together), dtype=torch.float32).unbind()
        # Kernels take a pointer for everything; one that the flags say is not read may point anywhere.
        marks, numbers = (x, x) if mask is None else (mask, counts)
        signs = None if skip is None else x.new_empty((units * plan.size, plan.bytes), dtype=torch.uint8)
        flags = {"RELU": relu, "SKIP": skip is not None, "HAS_BIAS": bias is not None}
        masked = {"MASKED": plan.masked(mask)}
        follows = (x if skip is None else skip, x if signs is None else signs)
        given = (x, y, *follows, marks, numbers, *_pointers(weight, bias), mean, rstd)
        affine = (units // weight.shape[0], *_strides(weight, bias), eps, plan.chunks)
        if plan.whole:
            whole_forward_kernel[plan.grid](*given, plan.size, plan.pixels, *affine, **flags, **masked, **plan.options)
        else:
            parts = x
            if plan.splits > 1:
                parts = x.new_empty((2, units, plan.splits, x.shape[1]), dtype=torch.float32)
                sum_kernel[plan.sum_grid](
                    x, marks, parts, units, plan.size, plan.pixels, plan.splits, plan.chunks,
                    **masked, **plan.options,
                )  # fmt: skip
            forward_kernel[plan.grid](
                *given, parts, units, plan.size, plan.pixels, plan.splits, *affine,
                **flags, **masked, **plan.split_options,
            )  # fmt: skip
        ctx.save_for_backward(x, weight, bias, signs, mask, counts, mean, rstd)
        ctx.units, ctx.together, ctx.relu = units, together, relu
        ctx.set_materialize_grads(False)
        return y if skip is None else (y, y.data, y.data[:, :, ::2, ::2])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, dy: Tensor | None, second: Tensor | None = None, strided: Tensor | None = None
    ) -> tuple[Tensor | None, ...]:
        x, weight, bias, signs, mask, counts, mean, rstd = ctx.saved_tensors
        plan = _Plan.of(x, ctx.units, ctx.together, forward=False, branch=signs is not None)
        given = [channels_last(slope) for slope in (dy, second) if slope is not None]
        if strided is not None:
            # The kernels read two: one that is of all pixels, and this.
            given = [sum(given[1:], given[0]) if given else torch.zeros_like(x), channels_last(strided)]
        if not given:
            return (None,) * 10
        dx: Tensor | None = torch.empty_like(x)
        dskip = None if signs is None else torch.empty_like(x)
        apart = 0 if len(given) == 1 else (WHOLE_SECOND if strided is None else STRIDED).value
        flags = {"RELU": ctx.relu, "SKIP": signs is not None, "SECOND": apart, "HAS_BIAS": bias is not None}
        marks, numbers = (x, x) if mask is None else (mask, counts)
        affine = (plan.units // weight.shape[0], *_strides(weight, bias), plan.chunks)
        statistics = (*_pointers(weight, bias), mean, rstd)
        slopes = (x, given[0], given[-1], x if signs is None else signs, x if dskip is None else dskip)
        totals = x.new_empty((2, plan.units, x.shape[1]), dtype=torch.float32)
        sizes = (plan.units, plan.size, plan.pixels, x.shape[3])
        masked = {"MASKED": plan.masked(mask)}
        ends_here = not ctx.needs_input_grad[0]
        if plan.whole and not ends_here:
            whole_backward_kernel[plan.grid](
                *slopes, dx, marks, numbers, *statistics, totals, *sizes, *affine, **flags, **masked, **plan.options
            )
        else:
            parts = totals
            if plan.splits > 1 or ends_here:
                parts = x.new_empty((2, plan.units, plan.splits, x.shape[1]), dtype=torch.float32)
                slope_sum_kernel[plan.sum_grid](
                    *slopes, *statistics, parts, *sizes, plan.splits, *affine, **flags, **plan.options
                )
            if ends_here:
                dx, totals = None, parts.sum(dim=2)
            else:
                backward_kernel[plan.grid](
                    *slopes, dx, marks, numbers, *statistics, parts, totals, *sizes, plan.splits, *affine,
                    **flags, **masked, **plan.split_options,
                )  # fmt: skip
        dw = db = None
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            shares = totals.reshape(2, weight.shape[0], -1, x.shape[1])
            dw, db = (shares[:, :, 0] if shares.shape[2] == 1 else shares.sum(dim=2)).unbind()
        return dx, dw, db if ctx.needs_input_grad[2] else None, dskip, None, None, None, None, None, None


def channel_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    groups: int | None,
    eps: float,
    relu: bool,
    skip: Tensor | None = None,
    marks: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """A norm layer over channels-last images (K·B, C, H, W) whose first B belong to the first particle, and so on.

    Args:
        x: bfloat16 or float32, in channels-last layout.
        weight: (K, C) float32, contiguous in its last dimension.
        bias: like weight, or None.
        groups: groups of channels, each normalized over one image; None normalizes every channel over all images of a
            particle (BatchNorm).
        eps: added to the variance.
        relu: whether a ReLU follows.
        skip: like x, added before the ReLU that must then follow.
        marks: what ``marked`` says of the images that count for BatchNorm's statistics; None means all.

    Returns:
        The output. With a residual branch it has an attribute ``second_output``: the same values, apart for autograd,
        and the version of the output that they repeat; and ``strided_output``, every other pixel in both directions,
        also apart.
    """
    units, together = (weight.shape[0], 1) if groups is None else (x.shape[0], x.shape[1] // groups)
    mask, counts = (None, None) if marks is None else marks
    out = _ChannelNorm.apply(x, weight, bias, skip, mask, counts, units, together, eps, relu)
    if skip is None:
        return out
    # Who adds the output to another branch takes the second output: what comes back from there need not be added to
    # what comes back from elsewhere before the kernels read it. Writing to the output later leaves the second behind.
    out[0].second_output = (out[1], None if out[0].is_inference() else out[0]._version)
    out[0].strided_output = out[2]
    return out[0]


def marked(mask: Tensor, images: int) -> tuple[Tensor, Tensor]:
    """Which of a tensor's images count, and how many for each particle (one at least).

    Args:
        mask: (K, B) samples that count.
        images: of the tensor; a sample may have become several.
    """
    each = mask.repeat_interleave(images // mask.numel(), dim=1).contiguous()
    return each, each.sum(dim=1).clamp(min=1).float()


def _pointers(weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    return weight, weight if bias is None else bias


def _strides(weight: Tensor, bias: Tensor | None) -> tuple[int, int]:
    return weight.stride(0), 0 if bias is None else bias.stride(0)


def _tile(*, forward: bool, whole: bool, split: bool, crowded: bool) -> tuple[int, int]:
    """How many values a program holds at a time if not its whole unit, and how many of them each thread; by trying.

    A residual branch and groups that are filled up take registers, and leave fewer to a thread for other values.
    """
    if whole:
        return 0, 64 if forward and not crowded else 32
    if split:
        return 4096 if forward else 2048, 32
    return 8192 if forward else 4096, 16


def _power_between(least: int, wanted: int, most: int) -> int:
    """The largest power of two that is neither more than wanted nor than there is, but no less than ``least``."""
    return max(least, 1 << (max(1, min(wanted, most)).bit_length() - 1))
