"""The convolution on the shortcut of a residual block that makes images smaller.

It reads the same tensor as the block's first convolution. What comes back from both would be added before the kernels
of the norm layer below read it; it takes the tensor's second output, and they read two. Where it reads every other
pixel, it takes just these: what comes back then has no gaps to be filled with zeros.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from polytta.gpu.deferred import materialized, second_output_of, strided_output_of
from polytta.network.replacement import Replacement, is_altered


class Shortcut(Replacement):
    """A pointwise convolution with a stride."""

    inner: nn.Conv2d

    @staticmethod
    def fits(module: nn.Module) -> bool:
        """Whether a module is such a convolution."""
        return (
            type(module) is nn.Conv2d
            and module.kernel_size == (1, 1)
            and module.stride != (1, 1)
            and not is_altered(module)
        )

    def forward(self, x: Tensor) -> Tensor:
        """What the convolution returns."""
        x = materialized(x)
        strided = (
            strided_output_of(x) if self.inner.stride == (2, 2) and self.inner.padding in ((0, 0), "valid") else None
        )
        if strided is None:
            return self.inner(second_output_of(x))
        return F.conv2d(strided, self.inner.weight, self.inner.bias, groups=self.inner.groups)
