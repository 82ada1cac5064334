import pytest
import torch
from torch import nn

from polytta.gpu.pointwise import Pointwise

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_it_computes_what_the_convolution_does(bias: bool, layout: torch.memory_format) -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(16, 24, 1, bias=bias).to(DEVICE, torch.bfloat16)
    for parameter in conv.parameters():
        # Whole numbers, which bfloat16 holds exactly: the sums must be equal, not merely close.
        parameter.data = torch.randint(-2, 3, parameter.shape).to(parameter)
        parameter.requires_grad_(False)
    assert Pointwise.fits(conv)
    x = torch.randint(-2, 3, (2, 16, 4, 5)).to(DEVICE, torch.bfloat16)
    x = x.contiguous(memory_format=layout).requires_grad_()
    expected, got = conv(x), Pointwise(conv)(x)
    assert torch.equal(got, expected)
    assert got.is_contiguous(memory_format=layout)
    slope = torch.randint(-1, 2, expected.shape).to(expected)
    assert torch.equal(*(torch.autograd.grad(out, x, slope)[0] for out in (got, expected)))


def test_other_convolutions_and_other_numbers_are_left_alone() -> None:
    hooked = nn.Conv2d(16, 8, 1)
    hooked.register_forward_hook(lambda module, inputs, output: output)
    for conv in (
        nn.Conv2d(16, 8, 3),
        nn.Conv2d(16, 8, 1, stride=2),
        nn.Conv2d(16, 8, 1, padding=1),
        nn.Conv2d(16, 8, 1, groups=2),
        nn.Conv2d(512, 8, 1),
        nn.Conv2d(1, 8, 1),
        hooked,
    ):
        assert not Pointwise.fits(conv)
    conv = nn.Conv2d(16, 8, 1)
    x = torch.randn(2, 16, 4, 4)
    assert torch.equal(Pointwise(conv)(x), conv(x))
