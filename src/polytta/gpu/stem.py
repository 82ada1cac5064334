r"""The first convolution of a network, in a form that matrix units can run.

Images have three channels, too few for the units, which want eight: such a convolution takes far longer than it should.
With stride 2 each 2x2 block of pixels becomes the channels of one (space to depth), the window of 2m or 2m - 1 pixels
one of m, and the stride 1:

    Σ_ij w[2i + a, 2j + b] x[2(p + i) + a, 2(q + j) + b]  =  Σ_ij w'[i, j; a, b] x'[p + i, q + j; a, b]

A fourth channel is filled with zeros. The sums are the same, but for rounding.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polytta.gpu import kernels
from polytta.gpu.deferred import materialized
from polytta.network.replacement import Replacement, is_altered
from polytta.particles.fold import CurrentFold


class Stem(Replacement):
    """A convolution of stride 2 over few channels, as one of stride 1 over four times as many.

    Args:
        inner: the layer replaced.
        current: the pass under way.
    """

    inner: nn.Conv2d

    def __init__(self, inner: nn.Conv2d, current: CurrentFold) -> None:
        super().__init__(inner)
        self.current = current
        self.up, self.side = (int(amount) for amount in inner.padding)  # ``fits`` let no word in
        self.missing = inner.in_channels % 2
        tall, broad = inner.kernel_size
        folded = _space_to_depth(F.pad(inner.weight.detach(), (0, broad % 2, 0, tall % 2, 0, self.missing)))
        self.register_buffer("folded", folded.contiguous(memory_format=torch.channels_last), persistent=False)

    @staticmethod
    def fits(module: nn.Module) -> bool:
        """Whether a module is such a convolution."""
        return (
            type(module) is nn.Conv2d
            and module.in_channels <= 4
            and module.stride == (2, 2)
            and isinstance(module.padding, tuple)
            and module.padding_mode == "zeros"
            and module.dilation == (1, 1)
            and module.groups == 1
            and min(module.kernel_size) > 1
            and not is_altered(module)
        )

    def forward(self, x: Tensor) -> Tensor:
        """What the convolution returns."""
        x = materialized(x)
        (tall, broad), up, side = self.inner.kernel_size, self.up, self.side
        images = x.dim() == 4 and x.shape[1] == self.inner.in_channels and x.dtype == torch.bfloat16
        if not images or x.shape[2] + 2 * up < tall or x.shape[3] + 2 * side < broad:
            return self.inner(x)
        # Rows and columns are folded in pairs. An odd last one gets a partner, or goes where no window reaches it.
        below, right = (
            size % 2 * (1 if window % 2 else -1) for size, window in zip(x.shape[2:], (tall, broad), strict=True)
        )
        if kernels.run_on(x) and not self.current.fold.twice:
            down, across = (x.shape[2] + 2 * up + below) // 2, (x.shape[3] + 2 * side + right) // 2
            at = kernels.Geometry(down, across, up, side, self.inner.in_channels + self.missing)
            rows = self.folded.permute(0, 2, 3, 1).flatten(2)
            if kernels.takes_stem(x, rows, at):
                return kernels.stem_convolution(x, rows, self.inner.bias, at)
        folded = _space_to_depth(F.pad(x, (side, side + right, up, up + below, 0, self.missing)))
        return F.conv2d(folded, self.folded, self.inner.bias)


def _space_to_depth(x: Tensor) -> Tensor:
    """(N, C, 2H, 2W) to (N, 4C, H, W)."""
    blocks = x.unflatten(2, (-1, 2)).unflatten(4, (-1, 2))
    return blocks.permute(0, 2, 4, 3, 5, 1).flatten(3).permute(0, 3, 1, 2)
