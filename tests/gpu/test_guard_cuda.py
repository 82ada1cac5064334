"""The guard inside a recorded step does what it does on the CPU: same verdicts, same actions, same answers."""

import copy
from typing import Any

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
@pytest.mark.parametrize(
    "settings",
    [
        {"guard": "default"},
        {"guard": {"name": "strict", "reset_every": 3, "clip": 1.0}},
        {"method": "tent", "particles": 3, "lr": 10.0, "guard": "strict"},
        {"method": "tent", "particles": 1, "lr": 0.1, "statistics": "batch", "guard": "default"},
    ],
    ids=["population", "periodic", "hot", "single"],
)
def test_a_recorded_guard_does_what_it_does_on_the_cpu(kind: str, settings: dict[str, Any]) -> None:
    model = small_model(kind)
    # Looks at the source are rarer on a GPU, so none is due within this stream but the first.
    expected = polytta.adapt(model, engine="folded", exclude=None, **settings)
    got = polytta.adapt(copy.deepcopy(model).cuda(), exclude=None, **settings)
    for x in small_stream(12, 8):
        assert (got(x.cuda()).cpu() - expected(x)).abs().max() <= 1e-5
    assert got.totals.actions == expected.totals.actions
    assert (got.theta.cpu() - expected.theta).abs().max() <= 1e-5


@pytest.mark.parametrize("method", ["norm", "tent"])
def test_a_recorded_step_sets_the_same_images_aside(method: str) -> None:
    model = small_model("batch")
    expected = polytta.adapt(model, method, particles=2, lr=1e-3, engine="folded", exclude=None, guard="default")
    got = polytta.adapt(copy.deepcopy(model).cuda(), method, particles=2, lr=1e-3, exclude=None, guard="default")
    free = polytta.adapt(model, method, particles=2, lr=1e-3, engine="folded", exclude=None, guard="off")
    for x in small_stream(6, 16):
        x[-3:] = 10 * x[-3:] + 2
        wanted = expected(x)
        assert (free(x) - wanted)[:-3].abs().max() > 1e-3, "the test needs images that are set aside"
        assert (got(x.cuda()).cpu() - wanted)[:-3].abs().max() <= 1e-4
    assert (got.theta.cpu() - expected.theta).abs().max() <= 1e-4
