import torch
from torch import nn

from polytta.gpu.shortcut import Shortcut


def test_a_shortcut_reads_the_second_output_of_a_tensor_that_is_still_the_same() -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 4, 1, 2)
    assert Shortcut.fits(conv)
    source = torch.randn(2, 3, 6, 6, requires_grad=True)
    x = source * 1
    second = x.data.requires_grad_()
    x.second_output = (second, x._version)  # type: ignore[attr-defined]
    got = Shortcut(conv)(x)
    assert torch.equal(got, conv(x))
    read = torch.autograd.grad(got.sum(), (x, second), allow_unused=True, retain_graph=True)
    assert read[0] is None
    assert read[1] is not None
    x.mul_(2)
    assert torch.equal(Shortcut(conv)(x), conv(x))


def test_a_shortcut_that_reads_every_other_pixel_takes_just_these() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 4, 7, 6, requires_grad=True) * 1
    second, strided = x.data.requires_grad_(), x.data[:, :, ::2, ::2].detach().requires_grad_()
    x.second_output, x.strided_output = (second, x._version), strided  # type: ignore[attr-defined]
    for options, reads_thin in (({"stride": 2}, True), ({"stride": 2, "groups": 2}, True), ({"stride": 3}, False)):
        conv = nn.Conv2d(4, 4, 1, **options)
        got = Shortcut(conv)(x)
        assert torch.allclose(got, conv(x), atol=1e-6)
        slopes = torch.autograd.grad(got.sum(), (second, strided), allow_unused=True)
        assert [slope is not None for slope in slopes] == [not reads_thin, reads_thin]
    padded = nn.Conv2d(4, 4, 1, 2, padding=1)
    assert torch.equal(Shortcut(padded)(x), padded(x))
    x.mul_(2)
    changed = nn.Conv2d(4, 4, 1, 2)
    assert torch.equal(Shortcut(changed)(x), changed(x))


def test_other_convolutions_are_left_alone() -> None:
    hooked = nn.Conv2d(3, 4, 1, 2)
    hooked.register_forward_hook(lambda module, inputs, output: output)
    for module in (nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 3, 2), nn.Linear(3, 4), hooked):
        assert not Shortcut.fits(module)
