"""Pointwise convolutions over few channels, as the matrix products they are.

Left to itself, the library takes a slower general form for them.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polytta.gpu.deferred import materialized
from polytta.network.replacement import Replacement, is_altered

_FEW = 64
"""Channels; with more, the library takes a matrix product itself."""


class Pointwise(Replacement):
    """A convolution of single pixels."""

    inner: nn.Conv2d

    @staticmethod
    def fits(module: nn.Module) -> bool:
        """Whether a module is such a convolution."""
        return (
            type(module) is nn.Conv2d
            and 1 < module.in_channels <= _FEW  # images of one channel have no layout of their own
            and module.kernel_size == (1, 1)
            and module.stride == (1, 1)
            and module.padding in ((0, 0), "valid", "same")
            and module.groups == 1
            and not is_altered(module)
        )

    def forward(self, x: Tensor) -> Tensor:
        """What the convolution returns."""
        x = materialized(x)
        if x.dtype != torch.bfloat16 or x.dim() != 4 or not x.is_contiguous(memory_format=torch.channels_last):
            return self.inner(x)
        return F.linear(x.permute(0, 2, 3, 1), self.inner.weight.flatten(1), self.inner.bias).permute(0, 3, 1, 2)
