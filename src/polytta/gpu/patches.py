"""Two pieces of vision transformers that torch runs slowly, computed the same but faster.

Cutting an image into patches is a convolution that never overlaps, that is one matrix product over rearranged pixels.
And the gradient of splitting a joint query-key-value projection is put where the projection wants it, instead of being
stacked first and rearranged afterwards.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from polytta.gpu.deferred import materialized
from polytta.network.replacement import Replacement, is_altered


class PatchProjection(Replacement):
    """A convolution whose stride is its kernel size, as a matrix product."""

    inner: nn.Conv2d

    @staticmethod
    def fits(module: nn.Module) -> bool:
        """Whether a module is such a convolution."""
        return (
            type(module) is nn.Conv2d
            and module.kernel_size == module.stride
            and module.kernel_size[0] * module.kernel_size[1] > 1
            and module.padding == (0, 0)
            and module.dilation == (1, 1)
            and module.groups == 1
            and not is_altered(module)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, D, H/h, W/w)."""
        high, wide = self.inner.kernel_size
        down, across = x.shape[-2] // high, x.shape[-1] // wide
        if not down or not across:
            return self.inner(x)  # which says what is wrong
        tiles = x[..., : down * high, : across * wide].unflatten(-2, (down, high)).unflatten(-1, (across, wide))
        rows = tiles.permute(0, 2, 4, 1, 3, 5).flatten(3)
        return F.linear(rows, self.inner.weight.flatten(1), self.inner.bias).permute(0, 3, 1, 2)


class SplitsKeepLayout(TorchFunctionMode):
    """While active, ``unbind`` returns gradients in the memory layout of what was split."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        if func in (torch.unbind, Tensor.unbind) and args and isinstance(args[0], Tensor) and args[0].requires_grad:
            dim, whole = args[1] if len(args) > 1 else named.get("dim", 0), materialized(args[0])
            if not whole.is_contiguous() and _dense(whole):
                return _Unbind.apply(whole, dim)
        return func(*args, **named)


def _dense(x: Tensor) -> bool:
    """Whether a tensor is a rearranged contiguous one."""
    return x.permute(sorted(range(x.dim()), key=x.stride, reverse=True)).is_contiguous()


class _Unbind(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> tuple[Tensor, ...]:
        ctx.size, ctx.stride, ctx.dim = x.size(), x.stride(), dim
        return tuple(part.detach() for part in x.unbind(dim))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        joint = torch.empty_strided(ctx.size, ctx.stride, dtype=slopes[0].dtype, device=slopes[0].device)
        for number, slope in enumerate(slopes):
            joint.select(ctx.dim, number).copy_(slope)
        return joint, None
