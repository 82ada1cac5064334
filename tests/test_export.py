"""Frozen modules answer as the adapter did, and pass through torch.export and ONNX."""

from pathlib import Path

import numpy as np
import pytest
import torch

import polytta
from polytta.adapter import Adapted
from polytta.checks.networks import small_model, small_stream
from polytta.errors import ConfigError
from polytta.views import Views, horizontal_flip, unchanged

WHICH = ["merged", "best", 1, "ensemble"]


def adapted_population(kind: str, **arguments: object) -> Adapted:
    adapted = polytta.adapt(small_model(kind), "tent", lr=0.05, lr_spread=0.5, exclude=None, **arguments)
    for x in small_stream(5, 6):
        adapted(x)
    return adapted


@pytest.mark.parametrize("kind", ["batch", "group", "layer", "layer-token-first"])
def test_frozen_modules_answer_as_the_adapter_would(kind: str) -> None:
    adapted = adapted_population(kind)
    x = small_stream(1, 6, seed=4)[0]
    assert torch.allclose(adapted.freeze("ensemble")(x), adapted.predict(x))
    each = adapted.particles_log_probs(x)
    assert torch.allclose(adapted.freeze(2)(x), each[2])
    assert torch.allclose(adapted.freeze("best")(x), each[adapted.best()])
    merged = adapted.freeze("merged")
    for name, value in adapted.merge().items():
        assert torch.equal(merged.network.get_parameter(name), value)
        assert torch.allclose(value, sum(adapted.particle(k)[name] for k in range(3)) / 3)


def test_an_ensemble_over_torchs_own_encoder_uses_the_particles() -> None:
    """Its fused inference path would read the source's norm weights."""
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = torch.nn.Sequential(layer, torch.nn.Flatten(), torch.nn.Linear(64, 5)).eval()
    adapted = polytta.adapt(model, "tent", lr=0.5, exclude=None)
    x = torch.randn(4, 4, 16)
    for _ in range(3):
        adapted(x)
    with torch.no_grad():
        assert torch.allclose(adapted.freeze("ensemble")(x), adapted.predict(x), atol=1e-5)
        assert not torch.allclose(adapted.predict(x), model(x).log_softmax(1), atol=1e-2)


def test_an_ensemble_carries_views_and_evidence() -> None:
    views = Views((unchanged, horizontal_flip), predict="mean")
    adapted = adapted_population("layer", views=views, aggregate="evidence")
    x = small_stream(1, 6, seed=4)[0]
    assert torch.allclose(adapted.freeze("ensemble")(x), adapted.predict(x))


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.*torch.jit.trace:DeprecationWarning")
def test_the_recommended_population_can_be_traced() -> None:
    adapted = polytta.adapt(small_model("batch"))
    adapted(small_stream(1, 6)[0])
    frozen = adapted.freeze()
    traced = torch.jit.trace(frozen, small_stream(1, 6)[0])
    x = small_stream(1, 9, seed=4)[0]
    assert torch.allclose(traced(x), frozen(x))


def test_later_adaptation_does_not_reach_a_frozen_module() -> None:
    adapted = adapted_population("group")
    x = small_stream(1, 6, seed=4)[0]
    frozen = {which: adapted.freeze(which) for which in WHICH}
    before = {which: module(x) for which, module in frozen.items()}
    for images in small_stream(5, 6, seed=8):
        adapted(images)
    assert all(torch.equal(module(x), before[which]) for which, module in frozen.items())


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
def test_torch_export_with_any_batch_size(kind: str, which: object) -> None:
    module = adapted_population(kind).freeze(which)
    batch = torch.export.Dim("batch", min=2, max=64)
    exported = torch.export.export(module, (small_stream(1, 4)[0],), dynamic_shapes=({0: batch},))
    x = small_stream(1, 7, seed=4)[0]
    assert torch.allclose(exported.module()(x), module(x))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("which", WHICH)
def test_onnx(which: object, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    module = adapted_population("group").freeze(which).float()
    x = small_stream(1, 4, dtype=torch.float32)[0]
    torch.onnx.export(module, (x,), tmp_path / "frozen.onnx", dynamo=True, verbose=False)
    session = runtime.InferenceSession(str(tmp_path / "frozen.onnx"), providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert np.abs(got - module(x).numpy()).max() <= 1e-5


def test_bad_choices_get_one_clear_sentence() -> None:
    adapted = adapted_population("group")
    for which in ("mean", 3, -1):
        with pytest.raises(ConfigError, match=r"which: got .*a particle 0\.\.2"):
            adapted.freeze(which)
    with pytest.raises(ConfigError, match="has not seen a batch"):
        polytta.adapt(small_model("group")).freeze("ensemble")


def test_the_default_freezes_the_recommended_population() -> None:
    adapted = polytta.adapt(small_model("group"))
    for x in small_stream(3, 4):
        adapted(x)
    assert torch.allclose(adapted.freeze()(x), adapted.predict(x))


@pytest.mark.parametrize("which", WHICH)
def test_every_frozen_form_returns_log_probabilities(which: object) -> None:
    told = adapted_population("group").freeze(which)(small_stream(1, 4)[0])
    assert torch.allclose(told.exp().sum(dim=1), torch.ones(4, dtype=told.dtype))
