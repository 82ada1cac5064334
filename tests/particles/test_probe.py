import pytest
import torch
from torch import Tensor, nn

import polytta
from polytta.errors import ModelError


class Mixing(nn.Module):
    """Subtracts the batch mean: samples are not treated each by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.head = nn.LayerNorm(6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x - x.mean(dim=0)))


class Prompted(nn.Module):
    """Normalizes a learned vector that no sample touches."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt = nn.Parameter(torch.randn(6))
        self.norm, self.own, self.head = nn.LayerNorm(6), nn.LayerNorm(6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.own(x) + self.norm(self.prompt))


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.head = nn.LayerNorm(6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Mixing(), "mix or change order before norm layer 'norm'"),
        (Prompted(), "'norm' applied to a tensor without one batch dimension"),
        (Unused(), "'norm', which forward never calls"),
    ],
)
def test_models_that_cannot_be_folded_are_refused(model: nn.Module, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        polytta.adapt(model, "tent", exclude=None)(torch.randn(4, 6))


def test_excluding_the_offending_layer_helps() -> None:
    assert polytta.adapt(Prompted(), "tent", exclude="norm")(torch.randn(4, 6)).shape == (4, 3)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (lambda y: y[0], r"got a tensor \(3,\) of torch.float32 for 3 images"),
        (lambda y: (y[0],), r"got tuple of \(3,\) for 3 images"),
        (lambda y: y[:, :1], ">= 2 floating-point class logits"),
    ],
)
def test_outputs_that_are_not_logits_are_refused(output: object, message: str) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.head = nn.LayerNorm(6), nn.Linear(6, 3)

        def forward(self, x: Tensor) -> object:
            return output(self.head(self.norm(x)))

    with pytest.raises(ModelError, match=message):
        polytta.adapt(Odd(), "tent", exclude=None)(torch.randn(4, 6))
