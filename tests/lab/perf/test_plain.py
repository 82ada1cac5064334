"""The rival of the speed table computes what polytta's loop does."""

import copy

import pytest
import torch
from torch import Tensor

import polytta
from polytta.lab.perf.plain import PlainDeYO, _shuffled
from polytta.methods import DeYO
from polytta.models import create
from polytta.roles.noise import Noise


def shuffled_alike(x: Tensor, noise: Noise) -> Tensor:
    return _shuffled(x[0]).unsqueeze(0)


MODELS = {"resnet_gn": 0.2, "resnet_bn": 0.7, "vit_ln": 0.2}
"""A PLPD that some images of noise do not reach."""


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("selects", [False, True], ids=["everything", "selected"])
def test_it_is_the_same_computation(model: str, selects: bool) -> None:
    network = create(f"bundled/cifar10_{model}").module.double()
    thresholds = (2.0, MODELS[model] if selects else -1.0)
    method = DeYO(*thresholds, shuffle=shuffled_alike)
    ours = polytta.adapt(network, method, particles=1, lr=1e-3, engine="loop", statistics="batch")
    plain = PlainDeYO(copy.deepcopy(network), 1e-3, *thresholds)
    for step in range(3):
        x = torch.randn(12, 3, 32, 32, dtype=torch.float64)
        torch.manual_seed(step)
        told = ours(x)
        torch.manual_seed(step)
        assert torch.allclose(plain(x).log_softmax(1), told, rtol=0, atol=1e-9)
    assert ours.last is not None
    assert 0 < ours.last.selected["plpd"][0] <= 12
    assert (ours.last.selected["plpd"][0] < 12) == selects
    vector = torch.cat([parameter.detach().flatten() for parameter in plain.parameters])
    assert torch.allclose(vector, ours.theta[0], rtol=0, atol=1e-9)
    assert not torch.equal(vector, ours.source)


def test_tiles_are_moved_and_none_is_lost() -> None:
    x = torch.arange(2 * 3 * 8 * 8).reshape(2, 3, 8, 8)
    moved = _shuffled(x)
    assert not torch.equal(moved, x)
    for one, other in zip(x, moved, strict=True):
        assert torch.equal(one.flatten().sort().values, other.flatten().sort().values)
