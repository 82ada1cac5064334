"""Rows that do not move keep everything, and nothing non-finite gets in."""

import pytest
import torch
from torch import Tensor

from polytta.guard import accepted, usable_direction
from polytta.optim import SGD, Adam, AdamW, Optimizer, PopulationOptimizer, Slots

SIZE = 7
RATES = torch.tensor([0.01, 0.03, 0.1], dtype=torch.float64)


def step(optimizer: Optimizer, theta: Tensor, state: Slots, direction: Tensor, rates: Tensor) -> tuple[Tensor, Slots]:
    return PopulationOptimizer([optimizer] * len(theta)).step(theta, direction, state, rates, torch.zeros(SIZE))


@pytest.mark.parametrize("optimizer", [SGD(), Adam(), AdamW()], ids=lambda optimizer: optimizer.name)
def test_a_row_that_does_not_move_keeps_its_state(optimizer: Optimizer) -> None:
    theta = torch.randn(3, SIZE)
    state = PopulationOptimizer([optimizer] * 3).init(theta)
    theta, state = step(optimizer, theta, state, torch.ones_like(theta), RATES)
    moves = torch.tensor([True, False, True])
    after, new = accepted(moves, (theta, state), step(optimizer, theta, state, torch.ones_like(theta), RATES))
    assert torch.equal(after[1], theta[1])
    assert not torch.equal(after[0], theta[0])
    for name, values in new.items():
        assert torch.equal(values[1], state[name][1]), name


def test_a_step_that_would_overflow_is_not_taken() -> None:
    theta = torch.zeros(2, SIZE)
    state = PopulationOptimizer([SGD()] * 2).init(theta)
    direction = torch.stack([torch.full((SIZE,), 1e38), torch.ones(SIZE)])
    stepped = step(SGD(), theta, state, direction, torch.tensor([1e10, 1.0]))
    after, new = accepted(torch.tensor([True, True]), (theta, state), stepped)
    assert torch.equal(after, torch.stack([torch.zeros(SIZE), -torch.ones(SIZE)])), "its neighbour moves all the same"
    assert not new["momentum"][0].any()


def test_a_direction_with_one_bad_value_is_none() -> None:
    direction = torch.ones(3, SIZE)
    direction[0, 2] = torch.nan
    got, healthy = usable_direction(direction, torch.tensor([True, True, False]))
    assert healthy.tolist() == [False, True, True]
    assert got.sum(dim=1).tolist() == [0.0, SIZE, 0.0]
