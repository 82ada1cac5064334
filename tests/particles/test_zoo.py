"""Folded equals loop on real architectures (random weights)."""

import pytest
import torch

import polytta
from polytta.methods import DeYO

zoo = pytest.importorskip("tests.particles.zoo")


@pytest.mark.long
@pytest.mark.parametrize("name", list(zoo.models()))
def test_engines_agree(name: str) -> None:
    model, side = zoo.build(name)
    generator = torch.Generator().manual_seed(1)
    stream = [torch.randn(2, 3, side, side, generator=generator, dtype=torch.float64) for _ in range(3)]
    method = DeYO(entropy_threshold=2.0, plpd_threshold=-1.0)
    runs = {}
    for engine in ("loop", "folded", "static"):
        adapted = polytta.adapt(model, method, particles=3, lr=1e-6, lr_spread=0.5, engine=engine, statistics="batch")
        runs[engine] = ([adapted(x) for x in stream], adapted.theta)
        assert min(adapted.totals.stepped) == len(stream)
    for engine in ("folded", "static"):
        for got, expected in zip(runs[engine][0], runs["loop"][0], strict=True):
            assert (got - expected).abs().max() <= 1e-8, engine
        assert (runs[engine][1] - runs["loop"][1]).abs().max() <= 1e-8, engine


@pytest.mark.long
def test_single_precision_agreement_after_twenty_steps() -> None:
    model, side = zoo.build("timm/resnet50_gn")
    model = model.float()
    generator = torch.Generator().manual_seed(1)
    stream = [torch.randn(1, 3, side, side, generator=generator) for _ in range(20)]
    outputs = []
    for engine in ("loop", "folded"):
        adapted = polytta.adapt(model, "tent", particles=3, lr=1e-4, engine=engine)
        outputs.append(torch.stack([adapted(x) for x in stream]))
    assert (outputs[0] - outputs[1]).abs().max() <= 1e-5


def test_particles_cost_almost_no_memory() -> None:
    model = zoo.timm_model("vit_base_patch16_224")
    adapted = polytta.adapt(model, "deyo", particles=3)
    frozen = {p.data_ptr() for p in model.parameters()}
    assert {p.data_ptr() for p in adapted.source_network.parameters()} == frozen, "frozen weights were copied"
    own = sum(b.numel() * b.element_size() for b in adapted.buffers())
    whole = sum(p.numel() * p.element_size() for p in model.parameters())
    assert own < 0.01 * whole
