"""Each optimizer follows torch.optim row by row."""

import pytest
import torch
from torch import Tensor

from polytta.errors import ConfigError
from polytta.optim import OPTIMIZERS, SGD, Adam, AdamW, Optimizer, PopulationOptimizer, resolve_optimizers
from polytta.optim.rule import reference_lr

SIZE = 7
RATES = torch.tensor([0.01, 0.03, 0.1], dtype=torch.float64)


def gradient(theta: Tensor, step: int) -> Tensor:
    return torch.sin(theta * (1 + step % 3)) + 0.1 * theta


def run(optimizers: list[Optimizer], steps: int = 100) -> Tensor:
    source = torch.linspace(-1, 1, SIZE, dtype=torch.float64)
    theta = source.expand(3, -1).clone()
    population = PopulationOptimizer(optimizers)
    state = population.init(theta)
    for step in range(steps):
        theta, state = population.step(theta, gradient(theta, step), state, RATES, source)
    return theta


def torch_run(make: object, rate: float, steps: int = 100) -> Tensor:
    parameter = torch.nn.Parameter(torch.linspace(-1, 1, SIZE, dtype=torch.float64))
    optimizer = make([parameter], lr=rate)
    for step in range(steps):
        parameter.grad = gradient(parameter.detach(), step)
        optimizer.step()
    return parameter.detach()


REFERENCES = [
    (SGD(), lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9)),
    (SGD(momentum=0.0), lambda p, lr: torch.optim.SGD(p, lr=lr)),
    (SGD(nesterov=True), lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9, nesterov=True)),
    (Adam(), lambda p, lr: torch.optim.Adam(p, lr=lr)),
    (AdamW(weight_decay=0.1, decay_to="zero"), lambda p, lr: torch.optim.AdamW(p, lr=lr, weight_decay=0.1)),
]


@pytest.mark.parametrize(("ours", "theirs"), REFERENCES, ids=lambda value: getattr(value, "name", ""))
def test_matches_torch_over_a_hundred_steps(ours: Optimizer, theirs: object) -> None:
    theta = run([ours] * 3)
    for row, rate in enumerate(RATES.tolist()):
        assert (theta[row] - torch_run(theirs, rate)).abs().max() <= 1e-6


def test_particles_may_use_different_optimizers() -> None:
    mixed = run([SGD(), Adam(), AdamW(weight_decay=0.1, decay_to="zero")])
    for row, (_, theirs) in enumerate([REFERENCES[0], REFERENCES[3], REFERENCES[4]]):
        assert (mixed[row] - torch_run(theirs, RATES[row].item())).abs().max() <= 1e-6


def test_adamw_decays_towards_the_source() -> None:
    source = torch.tensor([2.0, -1.0])
    theta = torch.tensor([[5.0, 5.0]])
    population = PopulationOptimizer([AdamW(weight_decay=0.5)])
    state = population.init(theta)
    for _ in range(200):
        rate = torch.tensor([0.1])
        theta, state = population.step(theta, torch.zeros(1, 2), state, rate, source)
    assert torch.allclose(theta, source, atol=1e-3)


def test_what_came_later_goes_unsaid_at_its_default() -> None:
    """Records of before are found by a hash over these tables."""
    assert OPTIMIZERS.plain(SGD()) == {"name": "sgd", "lr": None, "momentum": 0.9}
    table = OPTIMIZERS.plain(SGD(nesterov=True))
    assert table["nesterov"] is True
    assert OPTIMIZERS.make(table) == SGD(nesterov=True)


def test_reference_learning_rates() -> None:
    assert reference_lr("convolutional", 64, 1.0) == pytest.approx(2.5e-4)
    assert reference_lr("convolutional", 1, 1.0) == pytest.approx(7.8125e-6)
    assert reference_lr("convolutional", 1, 2.0) == pytest.approx(1.5625e-5)
    assert reference_lr("transformer", 64, 2.0) == pytest.approx(1e-3)
    assert reference_lr("transformer", 1, 2.0) == pytest.approx(3.125e-5)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rmsprop", "optimizer: got 'rmsprop'; allowed are"),
        (["sgd", "adam"], "got 2 for 3 particles"),
        (SGD(lr=-1.0), r"lr=-1.0\); allowed is a finite lr >= 0"),
        (SGD(momentum=1.5), "0 <= momentum < 1"),
        (SGD(momentum=0.0, nesterov=True), "allowed with nesterov is momentum > 0"),
        (Adam(eps=0.0), "eps > 0"),
        (AdamW(decay_to="home"), "decay_to 'source' or 'zero'"),
    ],
)
def test_bad_values_get_one_clear_sentence(spec: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve_optimizers(spec, 3)
