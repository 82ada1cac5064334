"""TPT's and DiffTPT's settings, and the views users make for them."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import polytta
from polytta.checks.networks import small_clip, small_stream
from polytta.errors import ConfigError
from polytta.methods import TPT, DiffTPT


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: TPT(views=True), "views=True.; allowed is a number >= 1, or a callable"),
        (lambda: TPT(steps=True), "steps=True, .*; allowed are a share within 0..1, steps >= 1 and a finite lr > 0"),
        (lambda: TPT(lr=math.inf), "lr=inf.; allowed are"),
        (lambda: TPT(lr="a"), "lr='a'.; allowed are"),
        (lambda: TPT(share=math.nan), "share=nan, .*; allowed are"),
        (lambda: TPT(vectors=[[1.0]]), "got list in tpt.vectors; allowed is a tensor of finite numbers"),
        (
            lambda: TPT(vectors=torch.full((4, 16), torch.nan)),
            "got NaN or infinity in tpt.vectors; allowed is a tensor",
        ),
        (
            lambda: TPT(views=lambda x, noise: None),
            "got NoneType from tpt.views for images of .*; allowed is a list of",
        ),
        (
            lambda: TPT(views=lambda x, noise: [x[..., :4]]),
            "got .* from tpt.views for images of .*; allowed is a list of",
        ),
        (lambda: TPT(views=lambda x, noise: [x, "x"]), "got str from tpt.views for images of"),
        (lambda: DiffTPT(generator=lambda x, noise: 5), "got int from difftpt.generator for images of"),
        (lambda: DiffTPT(generator=lambda x, noise: [x], similar="a"), "similar='a'.; allowed is a share"),
    ],
)
def test_wrong_settings_get_one_sentence(make: Callable[[], TPT], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        polytta.adapt(small_clip(), make(), particles=1)(small_stream(1, 2)[0])


@pytest.mark.parametrize(
    "views",
    [
        lambda x, noise: (x.flip(-1), 0.9 * x),
        lambda x, noise: torch.stack([x.flip(-1), 0.9 * x]),
        lambda x, noise: [x.flip(-1), 0.9 * x[:1]],
    ],
)
def test_views_come_in_any_sequence(views: Callable[[Tensor, Any], Any]) -> None:
    x = small_stream(1, 2)[0]
    wanted = polytta.adapt(small_clip(), TPT(views=lambda x, noise: [x.flip(-1), 0.9 * x], share=1.0), particles=2)(x)
    assert torch.equal(polytta.adapt(small_clip(), TPT(views=views, share=1.0), particles=2)(x), wanted)
