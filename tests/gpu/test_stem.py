import pytest
import torch
from torch import nn

from polytta.gpu.stem import Stem
from polytta.particles.fold import CurrentFold

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("size", "padding"), [((7, 7), (3, 3)), ((3, 3), (1, 1)), ((2, 5), (0, 2)), ((8, 4), (3, 1))])
@pytest.mark.parametrize("side", [(16, 20), (17, 20), (16, 23), (17, 23)])
@pytest.mark.parametrize(("channels", "outs", "bias"), [(1, 5, True), (3, 16, False), (4, 80, True)])
def test_a_folded_stem_computes_what_the_convolution_does(
    size: tuple[int, int], padding: tuple[int, int], side: tuple[int, int], channels: int, outs: int, bias: bool
) -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(channels, outs, size, 2, padding, bias=bias)
    # Whole numbers, which bfloat16 holds exactly: the sums must be equal, not merely close.
    for parameter in conv.parameters():
        parameter.data = torch.randint(-2, 3, parameter.shape).float()
    conv = conv.to(DEVICE, torch.bfloat16)
    assert Stem.fits(conv)
    x = torch.randint(-1, 2, (2, channels, *side)).to(DEVICE, torch.bfloat16)
    for images in (x, x.contiguous(memory_format=torch.channels_last)):
        images.requires_grad_()
        expected, got = conv(images), Stem(conv, CurrentFold())(images)
        assert torch.equal(got, expected)
        slope = torch.randint(0, 40, expected.shape).eq(0).to(DEVICE, torch.bfloat16)
        assert torch.equal(*(torch.autograd.grad(out, images, slope)[0] for out in (got, expected)))


def test_what_follows_may_write_to_the_output() -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 16, 7, 2, 3, bias=False).to(DEVICE, torch.bfloat16).requires_grad_(False)
    x = torch.randn(2, 3, 16, 16, device=DEVICE).bfloat16().requires_grad_()
    outs = [layer(x).relu_() for layer in (conv, Stem(conv, CurrentFold()))]
    slopes = [torch.autograd.grad(out.float().sum(), x)[0].float() for out in outs]
    assert torch.allclose(*slopes, atol=0.05 * float(slopes[0].abs().max()))


def test_other_convolutions_and_other_numbers_are_left_alone() -> None:
    hooked = nn.Conv2d(3, 8, 3, 2)
    hooked.register_full_backward_pre_hook(lambda module, slopes: None)
    replaced = nn.Conv2d(3, 8, 3, 2)
    replaced.forward = lambda x: x  # type: ignore[method-assign]
    for conv in (
        nn.Conv2d(3, 8, 3),
        nn.Conv2d(8, 8, 3, 2),
        nn.Conv2d(4, 8, 3, 2, groups=2),
        nn.Conv2d(3, 8, 3, 2, dilation=2),
        nn.Conv2d(3, 8, 3, 2, padding=1, padding_mode="reflect"),
        nn.Conv2d(3, 8, 1, 2),
        hooked,
        replaced,
    ):
        assert not Stem.fits(conv)
    conv = nn.Conv2d(3, 8, 3, 2)
    x = torch.randn(2, 3, 8, 8)
    assert torch.equal(Stem(conv, CurrentFold())(x), conv(x))
    with pytest.raises(RuntimeError, match="Kernel size can't be greater"):
        Stem(conv.bfloat16(), CurrentFold())(x[..., :2].bfloat16())
