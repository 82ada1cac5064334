"""Rates relative to the model: the formula by hand, what it is invariant to, and what keeps it in bounds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import polytta
from polytta.adapter import Adapted
from polytta.checks.networks import small_model, small_stream
from polytta.methods import DeYO, Tent, entropy
from polytta.optim import SGD, pace

PACES = (0.05, 0.1, 0.2)


def adapter(method: object = "tent", kind: str = "group", **options: Any) -> Adapted:
    return polytta.adapt(small_model(kind), method, **{"pace": PACES, "exclude": None, **options})


def after(adapted: Adapted, stream: list[Tensor]) -> Tensor:
    for x in stream:
        adapted(x)
    return adapted.theta


# ---------------------------------------------------------------------- the formula


def steps(count: int, rows: int = 3, size: int = 7, seed: int = 0) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Directions, losses and who moves, of a stream."""
    generator = torch.Generator().manual_seed(seed)

    def one() -> tuple[Tensor, Tensor, Tensor]:
        direction = torch.randn(rows, size, generator=generator, dtype=torch.float64)
        losses = torch.randn(rows, generator=generator, dtype=torch.float64)
        return direction, losses, torch.rand(rows, generator=generator) < 0.7

    return [one() for _ in range(count)]


def test_against_sums_over_everything_that_was_seen() -> None:
    paces = torch.tensor([0.0, 0.1, 0.5], dtype=torch.float64)
    state = pace.begin(torch.zeros(3, 7, dtype=torch.float64))
    squares: list[float] = []
    losses: list[float] = []
    for direction, loss, moves in steps(20):
        rates, state = pace.paced(paces, state, direction, loss, moves, 1)
        for row in range(3):
            if moves[row]:
                squares.append(sum(value**2 for value in direction[row].tolist()))
                losses.append(abs(float(loss[row])))
        if not squares:
            continue
        mean, mean_loss = sum(squares) / len(squares), sum(losses) / len(losses)
        for row in range(3):
            own = sum(value**2 for value in direction[row].tolist())
            assert float(rates[row]) == pytest.approx(float(paces[row]) * mean_loss / max(mean, own))
        assert pace.typical(paces, state, 1).tolist() == pytest.approx([p * mean_loss / mean for p in paces.tolist()])


def test_means_are_over_the_first_steps_of_each_particle_and_then_stay() -> None:
    paces, state = torch.full((2,), 0.1, dtype=torch.float64), pace.begin(torch.zeros(2, 7, dtype=torch.float64))
    for number, (direction, loss, _) in enumerate(steps(3 * pace.STEPS, rows=2)):
        before = state
        # The second one moves every other time only.
        moves = torch.tensor([True, number % 2 == 0])
        _, state = pace.paced(paces, state, direction, loss, moves, 1)
        changed = state["square"] != before["square"]
        assert changed.tolist() == [number < pace.STEPS, number % 2 == 0 and number < 2 * pace.STEPS]
    assert pace.STEPS == 64
    assert state["count"].tolist() == [64, 64]


def test_a_gradient_far_above_the_mean_goes_no_further_than_the_mean_one() -> None:
    paces, state = torch.full((1,), 0.1, dtype=torch.float64), pace.begin(torch.zeros(1, 4, dtype=torch.float64))
    always, loss = torch.tensor([True]), torch.ones(1, dtype=torch.float64)
    usual = torch.ones(1, 4, dtype=torch.float64)
    for _ in range(pace.STEPS):
        rates, state = pace.paced(paces, state, usual, loss, always, 1)
    assert float(rates * usual.square().sum()) == pytest.approx(0.1), "the share of a loss of 1"
    for factor in (0.5, 2.0, 1000.0):
        rates, _ = pace.paced(paces, state, factor * usual, loss, always, 1)
        removed = float(rates * (factor * usual).square().sum())
        assert removed == pytest.approx(0.1 * min(factor, 1.0) ** 2)


def test_populations_know_nothing_of_each_other() -> None:
    paces = torch.tensor([0.1, 0.2, 0.1, 0.2], dtype=torch.float64)
    both = pace.begin(torch.zeros(4, 7, dtype=torch.float64))
    alone = [pace.begin(torch.zeros(2, 7, dtype=torch.float64)) for _ in range(2)]
    for first, second in zip(steps(10, 2, seed=1), steps(10, 2, seed=2), strict=True):
        joined = [torch.cat(pair) for pair in zip(first, second, strict=True)]
        rates, both = pace.paced(paces, both, *joined, 2)
        for number, given in enumerate((first, second)):
            own, alone[number] = pace.paced(paces[:2], alone[number], *given, 1)
            assert torch.equal(rates[2 * number : 2 * number + 2], own)


# ---------------------------------------------------------------------- in an adapter


@dataclass(frozen=True)
class Louder(Tent):
    """Ten times the loss."""

    @staticmethod
    def sample_losses(logits: Tensor) -> Tensor:
        return 10 * entropy(logits)


def test_ten_times_the_loss_is_the_same_step() -> None:
    stream = small_stream(6, 6)
    plain, louder = (after(adapter(method), stream) for method in (Tent(), Louder()))
    assert float((plain - plain[:1]).abs().max()) > 1e-3
    assert torch.allclose(plain, louder, rtol=0, atol=1e-10)
    absolute = [after(adapter(method, pace=None, lr=0.01), stream) for method in (Tent(), Louder())]
    assert not torch.allclose(*absolute, atol=1e-3)


def test_the_first_step_is_polyaks() -> None:
    """θ - pace · ℓ / |g|² · g."""
    model, (x,) = small_model("group"), small_stream(1, 6)
    adapted = adapter(pace=0.1, particles=1)
    parameters = {name: value.requires_grad_() for name, value in adapted.particle(0).items()}
    loss = entropy(torch.func.functional_call(model, parameters, (x,))).mean()
    slopes = torch.autograd.grad(loss, list(parameters.values()))
    gradient = adapted.layout.flatten(dict(zip(parameters, slopes, strict=True)))
    rate = 0.1 * float(loss.detach()) / float(gradient.square().sum())
    assert torch.allclose(after(adapted, [x])[0], adapted.source - rate * gradient, rtol=0, atol=1e-10)
    assert float(adapted.learning_rates) == pytest.approx(rate)


def test_the_papers_factor_on_the_objective_is_no_other_pace() -> None:
    stream = small_stream(4, 6)
    scaled, literal = (after(adapter(objective=name), stream) for name in ("scaled", "literal"))
    assert torch.allclose(scaled, literal, rtol=0, atol=1e-10)


def test_each_populations_means_are_its_own() -> None:
    # Four times the contrast is another size of gradient.
    streams = [small_stream(5, 4), [4 * x for x in small_stream(5, 4, seed=1)]]
    both = adapter(DeYO(0.9, -0.5), populations=2)
    theta = after(both, [torch.stack(pair) for pair in zip(*streams, strict=True)])
    for number, stream in enumerate(streams):
        own = slice(3 * number, 3 * number + 3)
        alone = adapter(DeYO(0.9, -0.5))
        assert torch.allclose(theta[own], after(alone, stream), rtol=0, atol=1e-9)
        assert torch.allclose(both.learning_rates[own], alone.learning_rates, rtol=1e-9)
    assert not torch.allclose(both.learning_rates[:3], both.learning_rates[3:], rtol=0.1)


@pytest.mark.parametrize("diversity", ["none", "kl"])
def test_a_pace_of_zero_never_moves(diversity: str) -> None:
    adapted = adapter(pace=[0.0, 0.1, 0.0], diversity=diversity)
    after(adapted, small_stream(5, 6))
    assert torch.equal(adapted.theta[0], adapted.source)
    assert torch.equal(adapted.theta[2], adapted.source)
    assert not torch.equal(adapted.theta[1], adapted.source)
    assert adapted.totals.stepped == (0, 5, 0)
    assert adapted.learning_rates[[0, 2]].tolist() == [0.0, 0.0]


def test_methods_in_one_population_have_means_of_their_own() -> None:
    stream, methods = small_stream(4, 6), [Tent(), Louder(), Tent()]
    together = adapter(methods, pace=[0.1, 0.1, 0.0])
    theta = after(together, stream)
    for number, method in enumerate(methods):
        alone = adapter(method, pace=together.settings.pace[number], particles=1)
        assert torch.allclose(theta[number], after(alone, stream)[0], rtol=0, atol=1e-10)
        assert float(together.learning_rates[number]) == pytest.approx(float(alone.learning_rates[0]))


def test_rates_are_not_known_before_a_step() -> None:
    adapted = adapter(pace=[0.0, 0.1, 0.2])
    assert adapted.learning_rates[0] == 0
    assert bool(adapted.learning_rates[1:].isnan().all())
    assert adapted.settings.pace == (0.0, 0.1, 0.2)
    assert adapted.settings.lr is None


@pytest.mark.parametrize("at", [1, 3, 66])
def test_it_goes_on_bit_by_bit(at: int, tmp_path: Path) -> None:
    """Before, while and after the means are found."""
    stream = small_stream(at + 4, 3)
    whole = adapter(optimizer=[SGD(), SGD(momentum=0.0), SGD(nesterov=True)])
    after(whole, stream[:at])
    whole.save(tmp_path / "state")
    back = polytta.load(tmp_path / "state", small_model("group"))
    assert torch.equal(back.learning_rates, whole.learning_rates)
    for x in stream[at:]:
        assert torch.equal(back(x), whole(x))
    assert torch.equal(back.theta, whole.theta)
    assert torch.equal(back.learning_rates, whole.learning_rates)


def test_reset_forgets_what_paces_found_out() -> None:
    stream, adapted = small_stream(3, 6), adapter()
    first = after(adapted, stream)
    adapted.reset()
    assert bool(adapted.learning_rates.isnan().all())
    assert torch.equal(after(adapted, stream), first)
