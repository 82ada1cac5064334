import torch
from torch import Tensor, nn

from polytta.particles.activations import fusable_activations


class Net(nn.Module):
    """Norm, ReLU, and on demand somebody who looks at the tensor in between."""

    def __init__(self, *, peeks: bool = False, shares_relu: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm1, self.relu1 = nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.ReLU()
        self.norm2 = nn.GroupNorm(2, 4)
        self.relu2 = self.relu1 if shares_relu else nn.ReLU()
        self.peeks = peeks

    def forward(self, x: Tensor) -> Tensor:
        between = self.norm1(self.conv(x))
        out = self.relu1(between)
        out = self.relu2(self.norm2(out) + out)
        return (out + between if self.peeks else out).mean(dim=(2, 3))


def test_a_relu_right_after_a_norm_is_found() -> None:
    assert fusable_activations(Net(), ("norm1", "norm2"), torch.randn(3, 3, 8, 8)) == {"norm1": "relu1"}


def test_what_somebody_else_reads_or_uses_twice_is_left_alone() -> None:
    x = torch.randn(3, 3, 8, 8)
    assert fusable_activations(Net(peeks=True), ("norm1", "norm2"), x) == {}
    assert fusable_activations(Net(shares_relu=True), ("norm1", "norm2"), x) == {}
