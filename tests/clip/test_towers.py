"""Models taken apart: their two encoders, and the numbers beside these."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.clip.tiny_clip import TinyClip, tiny_clip, tokenize
from torch import Tensor, nn
from torch.nn import functional as F

import polytta
from polytta.clip import ZeroShot, zero_shot
from polytta.errors import ModelError

CLASSES = ("cat", "dog", "sport car")


def with_number(name: str, value: Any) -> TinyClip:
    model = tiny_clip()
    if hasattr(model, name):
        delattr(model, name)
    setattr(model, name, value)
    return model


def made(model: torch.nn.Module) -> ZeroShot:
    return zero_shot(model, tokenize, CLASSES, "photo")


@pytest.mark.parametrize(
    "value", [2, 2.0, torch.tensor(2.0), torch.tensor([2.0]), torch.nn.Parameter(torch.ones(1) * 2)]
)
@pytest.mark.parametrize("name", ["logit_scale", "logit_bias"])
def test_scale_and_bias_are_numbers_however_they_are_held(name: str, value: Any) -> None:
    x = torch.randn(2, 3, 32, 32)
    wanted = made(with_number(name, torch.nn.Parameter(torch.tensor(2.0))))(x)
    assert torch.equal(made(with_number(name, value))(x), wanted)


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (torch.zeros(2), r"\(2,\)"),
        (torch.zeros(0), r"\(0,\)"),
        ("x", "'x'"),
        (float("nan"), "nan"),
        (torch.tensor(torch.inf), "inf"),
    ],
)
@pytest.mark.parametrize("name", ["logit_scale", "logit_bias"])
def test_what_is_no_number_gets_one_sentence(name: str, value: Any, got: str) -> None:
    with pytest.raises(ModelError, match=f"model: got {got} as {name}; allowed is one finite number"):
        made(with_number(name, value))


class Holds(nn.Module):
    """All of a model in one part."""

    def __init__(self) -> None:
        super().__init__()
        self.clip = tiny_clip()

    def encode_image(self, x: Tensor) -> Tensor:
        return self.clip.encode_image(x)

    def encode_text(self, tokens: Tensor) -> Tensor:
        return self.clip.encode_text(tokens)


class Shares(Holds):
    """Both encoders end in the same layers, and a part has two names."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.head = nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 12))
        self.reads = self.clip.text_blocks

    def encode_image(self, x: Tensor) -> Tensor:
        return self.head(super().encode_image(x))

    def encode_text(self, tokens: Tensor) -> Tensor:
        return self.head(super().encode_text(tokens))


@pytest.mark.parametrize("kind", [tiny_clip, Holds, Shares])
def test_each_encoder_keeps_what_it_calls(kind: Callable[[], nn.Module]) -> None:
    model, x = kind().eval(), torch.randn(3, 3, 32, 32)
    network = made(model)
    with torch.no_grad():
        unit = F.normalize(model.encode_image(x), dim=-1)
        text = F.normalize(model.encode_text(tokenize([f"a photo of a {name}" for name in CLASSES])), dim=-1)
        assert torch.allclose(network(x), network.logit_scale.exp() * unit @ text.T, atol=1e-5)
    norms = {name for name, part in network.named_modules() if isinstance(part, nn.LayerNorm)}
    assert any("visual.blocks" in name for name in norms)
    assert not any("text_blocks" in name or "ln_final" in name for name in norms)
    assert not any("visual" in name for name, _ in network.text.module.named_modules())
    adapted = polytta.adapt(network, "tent", particles=2, lr=1e-3, exclude=None)
    assert any("head" in layer for layer in adapted.config.layers) == (kind is Shares)
    assert bool(adapted(x).isfinite().all())
    polytta.adapt(network, polytta.methods.TPT(views=2, share=0.5))(x)


class Odd(Shares):
    """Takes images of a size that nobody would try."""

    def encode_image(self, x: Tensor) -> Tensor:
        if x.shape[-1] != 33:
            raise ValueError("33 pixels")
        return super().encode_image(x[..., :32, :32])


def test_a_shared_part_that_could_not_be_seen_gets_one_sentence() -> None:
    model, x = Odd().eval(), torch.randn(2, 3, 33, 33)
    with pytest.raises(ModelError, match=r"got Odd, whose image encoder needs a part of its text encoder .*image_size"):
        made(model)(x)
    model.image_size = 33
    assert bool(polytta.adapt(made(model), "tent", lr=1e-3, exclude=None)(x).isfinite().all())


def test_an_encoder_held_in_one_part_needs_no_image() -> None:
    class Alone(Holds):
        def encode_image(self, x: Tensor) -> Tensor:
            if x.shape[-1] != 33:
                raise ValueError("33 pixels")
            return super().encode_image(x[..., :32, :32])

    network = made(Alone().eval())
    assert bool(polytta.adapt(network, "tent", lr=1e-3, exclude=None)(torch.randn(2, 3, 33, 33)).isfinite().all())
    assert not any("text_blocks" in name for name, _ in network.named_modules())
