"""The same answers on a GPU: every engine, method and diversifier against the loop on the CPU."""

import copy
from pathlib import Path

import pytest
import torch

import polytta
from polytta.checks.networks import KINDS, small_model, small_stream
from polytta.diversity import SVGD, Grad
from polytta.methods import EATA, SAR, DeYO, Method, Tent

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]

METHODS: list[Method] = [Tent(), EATA(redundancy=0.9), SAR(), DeYO(entropy_threshold=0.9, plpd_threshold=-0.2)]
DIVERSITIES = ["none", "kl", SVGD(bandwidth="median"), Grad(solver="exact", scale="literal", weight=0.01), "grad"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_gives_what_the_cpu_gives(kind: str) -> None:
    model, stream = small_model(kind), small_stream(8, 5)
    on_gpu = copy.deepcopy(model).cuda()
    for method in METHODS:
        for diversity in DIVERSITIES:
            arguments = {"diversity": diversity, "lr": 0.01, "exclude": None, "optimizer": ["sgd", "adam", "adamw"]}
            expected = polytta.adapt(model, method, engine="loop", **arguments)
            wanted = [expected(x) for x in stream]
            for engine in ("loop", "folded", "static"):
                adapted = polytta.adapt(on_gpu, method, engine=engine, **arguments)
                for x, reference in zip(stream, wanted, strict=True):
                    got = adapted(x.cuda())
                    assert got.is_cuda
                    assert (got.cpu() - reference).abs().max() <= 1e-6, (method.name, diversity, engine)
                assert adapted.totals.selected == expected.totals.selected


def test_moving_saving_and_loading(tmp_path: Path) -> None:
    model, stream = small_model("group"), small_stream(6, 4)
    adapted = polytta.adapt(model, "deyo", preset="official", diversity="grad", lr=0.01, exclude=None)
    for x in stream[:3]:
        adapted(x)
    adapted.cuda()
    assert not next(model.parameters()).is_cuda
    adapted.save(tmp_path / "state")
    back = polytta.load(tmp_path / "state", copy.deepcopy(model).cuda())
    for x in stream[3:]:
        assert torch.allclose(adapted(x.cuda()), back(x.cuda()))
    frozen = adapted.freeze("ensemble")
    assert torch.allclose(frozen(stream[0].cuda()), adapted.predict(stream[0].cuda()))


def test_bfloat16_autocast_stays_finite_and_close() -> None:
    model = small_model("layer", dtype=torch.float32, confidence=4.0).cuda()
    stream = [x.cuda() for x in small_stream(10, 4, dtype=torch.float32)]
    # Not SVGD: its repulsion of nearby particles divides by their squared distance and magnifies any rounding.
    for diversity in ("none", "kl", "grad"):
        outputs = []
        for enabled in (False, True):
            adapted = polytta.adapt(model, "tent", diversity=diversity, lr=1e-3, exclude=None)
            with torch.autocast("cuda", torch.bfloat16, enabled=enabled):
                outputs.append(torch.stack([adapted(x) for x in stream]))
            assert adapted.theta.dtype == torch.float32
        assert (outputs[0].exp() - outputs[1].exp()).abs().max() <= 0.05, diversity
