import torch
from torch import Tensor, nn

from polytta.particles.activations import fusable_activations


class Net(nn.Module):
    """Norm, ReLU, and on demand somebody who looks at the tensor in between."""

    def __init__(self, *, peeks: bool = False, shares_relu: bool = False, adds_in_place: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm1, self.relu1 = nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.ReLU()
        self.norm2 = nn.GroupNorm(2, 4)
        self.relu2 = self.relu1 if shares_relu else nn.ReLU()
        self.peeks, self.adds_in_place = peeks, adds_in_place

    def forward(self, x: Tensor) -> Tensor:
        between = self.norm1(self.conv(x))
        out = self.relu1(between)
        second = self.norm2(out)
        if self.adds_in_place:
            second += out
        else:
            second = second + out
        out = self.relu2(second)
        return (out + between if self.peeks else out).mean(dim=(2, 3))


def test_a_relu_right_after_a_norm_is_found() -> None:
    x = torch.randn(3, 3, 8, 8)
    for net in (Net(), Net(adds_in_place=True)):
        assert fusable_activations(net, ("norm1", "norm2"), x) == {"norm1": "relu1"}


def test_a_branch_that_is_silent_now_may_speak_later() -> None:
    net = Net(peeks=True)
    net.forward = lambda x: _with_silent_reader(net, x)  # type: ignore[method-assign]
    nn.init.zeros_(net.norm2.weight)
    nn.init.zeros_(net.norm2.bias)
    assert fusable_activations(net, ("norm1", "norm2"), torch.randn(3, 3, 8, 8)) == {}


def _with_silent_reader(net: Net, x: Tensor) -> Tensor:
    between = net.norm1(net.conv(x))
    return (net.relu1(between) + net.norm2(between)).mean(dim=(2, 3))


def test_a_relu_with_a_hook_is_left_alone() -> None:
    net = Net()
    net.relu1.register_forward_hook(lambda module, inputs, output: output.clamp(max=8))
    assert fusable_activations(net, ("norm1", "norm2"), torch.randn(3, 3, 8, 8)) == {}


def test_what_somebody_else_reads_or_uses_twice_is_left_alone() -> None:
    x = torch.randn(3, 3, 8, 8)
    assert fusable_activations(Net(peeks=True), ("norm1", "norm2"), x) == {}
    assert fusable_activations(Net(shares_relu=True), ("norm1", "norm2"), x) == {}
