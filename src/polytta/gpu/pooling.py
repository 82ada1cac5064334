"""Max pooling by a kernel where there is one for the layer and the tensor at hand."""

from torch import Tensor, nn

from polytta.gpu import kernels
from polytta.gpu.deferred import materialized
from polytta.network.replacement import Replacement, is_altered
from polytta.particles.fold import CurrentFold

_LARGEST = 7
"""Pixels of a window's side, and from one window to the next: the kernels' loops are written out."""


class FusedMaxPool(Replacement):
    """Max pooling with square windows.

    Args:
        inner: the layer replaced.
        current: the pass under way.
    """

    inner: nn.MaxPool2d

    def __init__(self, inner: nn.MaxPool2d, current: CurrentFold) -> None:
        super().__init__(inner)
        self.current = current
        self.window = tuple(_side(value) for value in (inner.kernel_size, inner.stride, inner.padding))

    @staticmethod
    def fits(module: nn.Module) -> bool:
        """Whether a module pools so."""
        if type(module) is not nn.MaxPool2d or is_altered(module):
            return False
        size, stride, padding, dilation = (
            _side(value) for value in (module.kernel_size, module.stride, module.padding, module.dilation)
        )
        plain = dilation == 1 and not module.ceil_mode and not module.return_indices
        return plain and 0 < size <= _LARGEST and 0 < stride <= _LARGEST and 0 <= 2 * padding <= size

    def forward(self, x: Tensor) -> Tensor:
        """What the layer returns."""
        x = materialized(x)
        size, stride, padding = self.window
        if self.current.fold.twice or not kernels.run_on_images(x) or min(x.shape[2:]) + 2 * padding < size:
            return self.inner(x)
        return kernels.max_pool(x, size, stride, padding)


def _side(value: object) -> int:
    """The side of a square, -1 if it is none."""
    sides = value if isinstance(value, tuple | list) else (value,)
    return int(sides[0]) if len(set(sides)) == 1 else -1
