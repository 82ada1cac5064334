"""Models taken apart: their two encoders, and the numbers beside these."""

from typing import Any

import pytest
import torch
from tests.clip.tiny_clip import TinyClip, tiny_clip, tokenize

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
