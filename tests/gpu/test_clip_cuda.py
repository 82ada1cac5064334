"""Methods that compare images with text, and the recommended populations: a GPU gives what the CPU gives."""

import copy

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.methods import TDA, TPT, WATTP, WATTS, CLIPArTT, Method

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]

METHODS: list[Method] = [
    WATTS(steps=1, rounds=2),
    WATTS(steps=1, rounds=1, order="own"),
    WATTP(steps=1, rounds=2),
    CLIPArTT(classes=2, steps=2),
    TPT(views=3, share=0.5),
    TDA(),
]


def compare(kind: str, batch: int, tolerance: float, **arguments: object) -> None:
    model = small_model(kind)
    expected = polytta.adapt(model, engine="folded", seed=0, **arguments)
    got = polytta.adapt(copy.deepcopy(model).cuda(), seed=0, **arguments)
    for x in small_stream(6, batch):
        assert (got(x.cuda()).cpu() - expected(x)).abs().max() <= tolerance


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_text_methods_give_what_the_cpu_gives(method: Method) -> None:
    compare("clip", 4, 1e-6, method=method, particles=3)


@pytest.mark.parametrize("size", ["small", "medium", "large"])
@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
def test_recommended_populations_give_what_the_cpu_gives(kind: str, size: str) -> None:
    for batch in (1, 8):
        compare(kind, batch, 1e-5, size=size)
