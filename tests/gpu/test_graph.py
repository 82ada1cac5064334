"""The passes of the graph engine, which need no GPU, against those of the plain folded one."""

import pytest
import torch
from torch import nn

import polytta
from polytta.errors import ConfigError
from polytta.gpu import GraphEngine
from polytta.gpu.patches import PatchProjection
from polytta.models import create
from polytta.particles import StaticFoldedEngine

zoo = pytest.importorskip("tests.particles.zoo")
CASES = [*((name, "batch") for name in zoo.models()), ("timm/resnet18", "source"), ("timm/efficientnet_b0", "source")]


def engines(model: nn.Module, x: torch.Tensor, statistics: str) -> tuple[GraphEngine, StaticFoldedEngine, torch.Tensor]:
    adapted = polytta.adapt(model, "tent", engine="static", statistics=statistics, lr=0.0)
    adapted.predict(x)
    findings = GraphEngine.examine(adapted.source_network, x[:1], adapted.config.layers)
    made = [
        engine(adapted.source_network, adapted.layout, findings, statistics)
        for engine in (GraphEngine, StaticFoldedEngine)
    ]
    noise = torch.randn(adapted.theta.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return made[0], made[1], (adapted.theta + 0.05 * noise).requires_grad_()


@pytest.mark.parametrize(("name", "statistics"), CASES)
def test_fused_passes_compute_what_plain_ones_do(name: str, statistics: str) -> None:
    model, side = zoo.build(name)
    x = torch.randn(3, 2, 3, side, side, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    graph, static, theta = engines(model, x[0], statistics)
    x.requires_grad_()
    results = []
    for engine in (graph, static):
        logits = engine.outputs(theta, x)[0]
        results.append((logits, *torch.autograd.grad(logits.square().sum(), (theta, x))))
    for got, expected in zip(*results, strict=True):
        assert torch.allclose(got, expected, rtol=1e-7, atol=1e-8)


def test_what_is_fused() -> None:
    model, side = zoo.build("timm/vit_tiny")
    graph, static, _ = engines(model, torch.randn(2, 3, side, side, dtype=torch.float64), "source")
    assert any(isinstance(module, PatchProjection) for module in graph.network.modules())
    assert len(graph.norms) > len(static.norms), "norm layers that nobody adapts are replaced too"
    model, side = zoo.build("timm/resnet50_gn")
    graph, _, _ = engines(model, torch.randn(2, 3, side, side, dtype=torch.float64), "source")
    assert sum(norm.defers for norm in graph.norms) == 49


def test_what_a_hook_keeps_is_of_the_pass_it_was_made_in() -> None:
    torch.manual_seed(0)
    block = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4))
    model = nn.Sequential(block, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)).double().eval()
    kept: list[torch.Tensor] = []
    x = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    graph, static, theta = engines(model, x, "batch")
    assert [norm.defers for norm in graph.norms] == [True]
    for engine in (graph, static):
        engine.network[0].register_forward_hook(lambda module, inputs, output: kept.append(output))
        engine.outputs(theta, x.expand(theta.shape[0], *x.shape))
        engine.outputs(3 * theta, x.expand(theta.shape[0], *x.shape))
    assert all(torch.allclose(got * 1, expected) for got, expected in zip(kept[:2], kept[2:], strict=True))


def test_a_graph_needs_a_gpu() -> None:
    source = create("bundled/cifar10_vit_ln")
    with pytest.raises(ConfigError, match=r"engine: got 'graph' for a model on cpu; allowed is a CUDA device"):
        polytta.adapt(source.module, engine="graph")
