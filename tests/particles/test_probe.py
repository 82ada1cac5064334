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


class Borrowing(nn.Module):
    """Uses the scale of its norm layer once more, or only asks what type it is."""

    def __init__(self, *, uses: bool) -> None:
        super().__init__()
        self.norm, self.head, self.uses = nn.LayerNorm(6), nn.Linear(6, 3), uses
        self.scale = self.norm.weight

    def forward(self, x: Tensor) -> Tensor:
        found = self.norm(x.to(self.norm.weight.dtype))
        return self.head(found * self.scale if self.uses else found)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Borrowing(uses=True), "'norm', whose parameters forward uses outside of it as well"),
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


def test_the_loop_puts_parameters_wherever_they_are_used() -> None:
    x = torch.randn(4, 6)
    for uses, engine in ((True, "loop"), (False, "folded")):
        model = Borrowing(uses=uses)
        adapted = polytta.adapt(model, "tent", particles=1, lr=0.1, engine=engine, exclude=None)
        assert torch.allclose(adapted(x), model(x).log_softmax(dim=-1), atol=1e-6)
        assert not any(parameter.requires_grad for parameter in adapted.source_network.parameters())
        moved = {
            f"norm.{name}": value for name, value in zip(("weight", "bias"), adapted.theta[0].split(6), strict=True)
        }
        if uses:
            moved["scale"] = moved["norm.weight"]
        expected = torch.func.functional_call(model, moved, (x,)).log_softmax(dim=-1)
        assert torch.allclose(adapted.predict(x), expected, atol=1e-6)
