r"""GroupNorm, InstanceNorm and BatchNorm of channels-last images, with an affine per particle and a fused ReLU.

All three are one computation. The image tensor is a matrix of (pixels, channels); consecutive pixels form *units* that
share statistics: one image for GroupNorm, all images of one particle for BatchNorm. With S the channels of a unit that
are normalized together and k the particle of the unit:

    y = relu((x - mean_S) / √(var_S + ε) · w_k + b_k)
    ∂x = (ĝ - mean_S(ĝ) - x̂ mean_S(ĝ x̂)) / √(var_S + ε),   ĝ = w · ∂y · [y > 0],   ∂w_k = Σ ∂y x̂,   ∂b_k = Σ ∂y

A unit too large for one program is split, the sums of the parts being added in a fixed order. With a mask only marked
images count for the statistics of BatchNorm (and only they get the second and third term of ∂x).
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from polytta.particles.kernels.channel_kernels import backward_kernel, forward_kernel, slope_sum_kernel, sum_kernel
from polytta.particles.kernels.channel_kernels_whole import whole_backward_kernel, whole_forward_kernel

ENOUGH = 528
"""Programs that keep a large GPU busy: four per multiprocessor."""
TILE = 4096
"""Values a program holds at a time."""
WHOLE = 16384
"""Values of a unit's channels up to which a program holds all of them."""
WIDTH = 32
"""Neighbouring channels a program reads where there is enough work, so that memory comes in whole sectors."""
MOST_SPLITS = 512


@dataclass(frozen=True)
class _Plan:
    """How a tensor is cut into programs.

    Attributes:
        units: number of statistical units.
        size: pixels of a unit.
        pixels: pixels of an image.
        blocks: programs along the channels.
        splits: parts of a unit.
        whole: whether a program holds its part of a unit.
        constants: sizes known when a kernel is compiled.
    """

    units: int
    size: int
    pixels: int
    blocks: int
    splits: int
    whole: bool
    constants: dict[str, int]

    @classmethod
    def of(cls, x: Tensor, units: int, together: int) -> "_Plan":
        images, channels, pixels = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
        size = images // units * pixels
        rows = int(triton.next_power_of_2(size))
        groups = _power_at_most(min(max(1, WIDTH // together), channels // together))
        while groups > 1 and units * triton.cdiv(channels, groups * together) < ENOUGH // 4 and size < 2**15:
            groups //= 2
        width = int(triton.next_power_of_2(groups * together))
        whole = rows * width <= WHOLE
        if not whole:
            rows = max(1, TILE // width)
        blocks = int(triton.cdiv(channels, groups * together))
        wanted = 2 * ENOUGH // (units * blocks)
        split = not whole and wanted >= 4
        splits = int(min(MOST_SPLITS, wanted, triton.cdiv(size, 2 * rows))) if split else 1
        constants = {"C": channels, "CG": together, "NG": groups, "CB": width, "MB": rows}
        return cls(units, size, pixels, blocks, splits, whole, constants)

    @property
    def grid(self) -> tuple[int, int, int]:
        # Neighbouring channels one after the other: what one program leaves of a cache line, the next one uses.
        return self.blocks, self.units, self.splits

    @property
    def options(self) -> dict[str, int]:
        """What every kernel is compiled with."""
        values = self.constants["MB"] * self.constants["CB"]
        return {**self.constants, "num_warps": min(16, max(1, values // 512))}


class _ChannelNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        mask: Tensor | None,
        units: int,
        together: int,
        eps: float,
        relu: bool,
    ) -> Tensor:
        plan = _Plan.of(x, units, together)
        y = torch.empty_like(x)
        mean, rstd = x.new_empty((2, units, x.shape[1] // together), dtype=torch.float32).unbind()
        counts = None if mask is None else mask.reshape(units, -1).sum(dim=1).clamp(min=1) * float(plan.pixels)
        # Kernels take a pointer for everything; one that the flags say is not read may point anywhere.
        marks, numbers = (x, x) if mask is None else (mask, counts)
        flags = {"RELU": relu, "HAS_BIAS": bias is not None, "MASKED": mask is not None}
        given = (x, y, marks, numbers, *_pointers(weight, bias), mean, rstd)
        affine = (units // weight.shape[0], *_strides(weight, bias), eps)
        if plan.whole:
            whole_forward_kernel[plan.grid](*given, plan.size, plan.pixels, *affine, **flags, **plan.options)
        else:
            totals = x
            if plan.splits > 1:
                parts = x.new_empty((2, units, plan.splits, x.shape[1]), dtype=torch.float32)
                sum_kernel[plan.grid](
                    x, marks, parts, units, plan.size, plan.pixels, plan.splits, MASKED=mask is not None, **plan.options
                )
                totals = parts.sum(dim=2)
            forward_kernel[plan.grid](
                *given, totals, units, plan.size, plan.pixels, plan.splits, *affine,
                KNOWN=plan.splits > 1, **flags, **plan.options,
            )  # fmt: skip
        ctx.save_for_backward(x, weight, bias, mask, counts, mean, rstd)
        ctx.plan, ctx.relu = plan, relu
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, mask, counts, mean, rstd = ctx.saved_tensors
        plan: _Plan = ctx.plan
        dy = dy.contiguous(memory_format=torch.channels_last)
        dx = torch.empty_like(x)
        flags = {"RELU": ctx.relu, "HAS_BIAS": bias is not None}
        marks, numbers = (x, x) if mask is None else (mask, counts)
        affine = (plan.units // weight.shape[0], *_strides(weight, bias))
        statistics = (*_pointers(weight, bias), mean, rstd)
        if plan.splits > 1:
            parts = x.new_empty((2, plan.units, plan.splits, x.shape[1]), dtype=torch.float32)
            slope_sum_kernel[plan.grid](
                x, dy, *statistics, parts, plan.units, plan.size, plan.splits, *affine, **flags, **plan.options
            )
            totals = parts.sum(dim=2)
        else:
            totals = x.new_empty((2, plan.units, x.shape[1]), dtype=torch.float32)
        given = (x, dy, dx, marks, numbers, *statistics, totals, plan.units, plan.size, plan.pixels)
        flags["MASKED"] = mask is not None
        if plan.whole:
            whole_backward_kernel[plan.grid](*given, *affine, **flags, **plan.options)
        else:
            backward_kernel[plan.grid](*given, plan.splits, *affine, KNOWN=plan.splits > 1, **flags, **plan.options)
        dw = db = None
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            shares = totals.reshape(2, weight.shape[0], -1, x.shape[1])
            dw, db = (shares[:, :, 0] if shares.shape[2] == 1 else shares.sum(dim=2)).unbind()
        return dx, dw, db if ctx.needs_input_grad[2] else None, None, None, None, None, None


def channel_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    groups: int | None,
    eps: float,
    relu: bool,
    mask: Tensor | None = None,
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
        mask: (K, B) images that count for BatchNorm's statistics; None means all.
    """
    units, together = (weight.shape[0], 1) if groups is None else (x.shape[0], x.shape[1] // groups)
    if mask is not None:
        # The kernels walk over it by image: expanded masks are laid out, and a sample may have become several images.
        mask = mask.repeat_interleave(x.shape[0] // mask.numel(), dim=1).contiguous()
    return _ChannelNorm.apply(x, weight, bias, mask, units, together, eps, relu)


def _pointers(weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    return weight, weight if bias is None else bias


def _strides(weight: Tensor, bias: Tensor | None) -> tuple[int, int]:
    return weight.stride(0), 0 if bias is None else bias.stride(0)


def _power_at_most(number: int) -> int:
    return 1 << (number.bit_length() - 1)
