import torch
from torch import nn

from polytta.particles.shortcut import Shortcut


def test_a_shortcut_reads_the_twin_of_a_tensor_that_is_still_the_same() -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 4, 1, 2)
    assert Shortcut.fits(conv)
    source = torch.randn(2, 3, 6, 6, requires_grad=True)
    x = source * 1
    twin = x.data.requires_grad_()
    x.twin = (twin, x._version)  # type: ignore[attr-defined]
    got = Shortcut(conv)(x)
    assert torch.equal(got, conv(x))
    read = torch.autograd.grad(got.sum(), (x, twin), allow_unused=True, retain_graph=True)
    assert read[0] is None
    assert read[1] is not None
    x.mul_(2)
    assert torch.equal(Shortcut(conv)(x), conv(x))


def test_other_convolutions_are_left_alone() -> None:
    hooked = nn.Conv2d(3, 4, 1, 2)
    hooked.register_forward_hook(lambda module, inputs, output: output)
    for module in (nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 3, 2), nn.Linear(3, 4), hooked):
        assert not Shortcut.fits(module)
