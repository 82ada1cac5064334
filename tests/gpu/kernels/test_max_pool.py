"""Max pooling against torch's own."""

import pytest
import torch
import torch.nn.functional as F
from tests.gpu.kernels.where import DEVICE, needs_kernels
from torch import nn

from polytta.gpu import kernels
from polytta.gpu.pooling import FusedMaxPool
from polytta.particles.fold import CurrentFold


@needs_kernels
@pytest.mark.parametrize(("size", "stride", "padding"), [(3, 2, 1), (2, 2, 0), (3, 1, 1), (2, 3, 1), (5, 2, 2)])
@pytest.mark.parametrize("channels", [5, 80])
def test_values_and_slopes_agree_with_torch(size: int, stride: int, padding: int, channels: int) -> None:
    generator = torch.Generator().manual_seed(0)
    # Few different values: of equal ones the first in the window gets the slope.
    x = torch.randint(-3, 3, (2, channels, 9, 12), generator=generator).float().to(DEVICE)
    x = x.contiguous(memory_format=torch.channels_last).requires_grad_()
    got, expected = kernels.max_pool(x, size, stride, padding), F.max_pool2d(x, size, stride, padding)
    assert got.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(got, expected)
    slope = torch.randint(-9, 9, expected.shape, generator=generator).float().to(DEVICE)
    assert torch.equal(*(torch.autograd.grad(out, x, slope)[0] for out in (got, expected)))


@needs_kernels
def test_nan_is_the_largest() -> None:
    x = torch.zeros(1, 1, 4, 4, device=DEVICE)
    x[0, 0, 1, 1] = float("nan")
    x = x.contiguous(memory_format=torch.channels_last)
    got, expected = kernels.max_pool(x, 3, 2, 1), F.max_pool2d(x, 3, 2, 1)
    assert torch.equal(got.isnan(), expected.isnan())
    assert got.isnan().any()


@needs_kernels
def test_of_nothing_but_the_smallest_the_first_counts() -> None:
    x = torch.full((1, 1, 4, 4), float("-inf"), device=DEVICE).contiguous(memory_format=torch.channels_last)
    x.requires_grad_()
    outs = kernels.max_pool(x, 3, 2, 1), F.max_pool2d(x, 3, 2, 1)
    slope = torch.ones_like(outs[1])
    assert torch.equal(*(torch.autograd.grad(out, x, slope)[0] for out in outs))


def test_what_the_kernel_does_not_know_is_left_to_torch() -> None:
    assert FusedMaxPool.fits(nn.MaxPool2d(3, 2, 1))
    assert FusedMaxPool.fits(nn.MaxPool2d([3, 3]))  # type: ignore[arg-type]
    hooked = nn.MaxPool2d(2)
    hooked.register_forward_hook(lambda module, inputs, output: output)
    for layer in (
        nn.MaxPool2d((3, 2)),
        nn.MaxPool2d(3, stride=20),
        nn.MaxPool2d(3, dilation=2),
        nn.MaxPool2d(3, ceil_mode=True),
        nn.MaxPool2d(3, return_indices=True),
        nn.MaxPool2d(8),
        nn.AvgPool2d(3),
        hooked,
    ):
        assert not FusedMaxPool.fits(layer)
    x = torch.randn(2, 3, 8, 8)
    layer = nn.MaxPool2d(3, 2, 1)
    assert torch.equal(FusedMaxPool(layer, CurrentFold())(x), layer(x))
    with pytest.raises(RuntimeError, match="size"):
        FusedMaxPool(nn.MaxPool2d(7), CurrentFold())(x[..., :5].contiguous(memory_format=torch.channels_last))
