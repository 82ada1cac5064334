"""Particles that learn alike go together, those that never learn are only asked: who is among them, and that nothing
of it shows in what anybody does."""

from typing import Any

import pytest
import torch
from torch import Tensor

import polytta
from polytta.adapter import Adapted
from polytta.checks.networks import small_model, small_stream
from polytta.methods import SAR, DeYO, Tent
from polytta.views import LENSES

METHOD = DeYO(0.9, -0.5)
# Moves no float64, and is a rate all the same.
TINY = 1e-30


def adapter(kind: str = "group", method: object = METHOD, **options: Any) -> Adapted:
    return polytta.adapt(small_model(kind), method, exclude=None, lr_spread=0.0, **options)


def run(adapted: Adapted, stream: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Answers, what every particle says, and parameters."""
    told = [(adapted.particles_log_probs(x), adapted(x)) for x in stream]
    return torch.stack([one[1] for one in told]), torch.stack([one[0] for one in told]), adapted.theta


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
@pytest.mark.parametrize("rates", [{"lr": [0.0, 0.02]}, {"pace": [0.0, 0.1]}])
@pytest.mark.parametrize("kind", ["group", "layer"])
def test_at_a_rate_of_zero_a_particle_is_the_source_through_its_lens(
    kind: str, rates: dict[str, Any], engine: str
) -> None:
    adapted = adapter(kind, axes="product", lenses="optics", engine=engine, **rates)
    model, lenses = small_model(kind), LENSES["optics"].transforms
    assert adapted.config.never_learn == set(range(5))
    for x in small_stream(4, 6):
        expected = torch.stack([model(lens(x)).log_softmax(dim=-1) for lens in lenses])
        assert torch.allclose(adapted.particles_log_probs(x)[:5], expected, rtol=0, atol=1e-9)
        adapted(x)
        assert torch.allclose(adapted.last.logits[:5].log_softmax(dim=-1), expected, rtol=0, atol=1e-9)
        assert adapted.last.forward_by_particle[:5] == (6,) * 5
        assert adapted.last.backward_by_particle[:5] == (0,) * 5
        assert adapted.last.loss[:5] == (0.0,) * 5
    assert torch.equal(adapted.theta[:5], adapted.source.expand(5, -1))
    assert all(count > 0 for count in adapted.totals.backward_by_particle[5:])
    assert all(count > 0 for count in adapted.totals.stepped[5:])


def test_who_is_in_which_squad() -> None:
    def squads(**options: Any) -> list[tuple[tuple[int, ...], str, bool]]:
        return [(rows, one.name, learns) for rows, one, learns in adapter(**options).config.squads()]

    assert squads(particles=3) == [((0, 1, 2), "deyo", True)]
    assert squads(particles=3, lr=[0.1, 0.0, 0.2]) == [((0, 2), "deyo", True), ((1,), "deyo", False)]
    assert squads(method=["tent", "source", "tent"], particles=3) == [((0, 2), "tent", True), ((1,), "source", False)]
    assert squads(method=[SAR(0.1), SAR(0.2), SAR(0.1)], particles=3) == [((0, 2), "sar", True), ((1,), "sar", True)]
    mixed = squads(method=["tent", "sar"], axes="product", lr=[0.0, 0.1])
    assert mixed == [((0,), "tent", False), ((1,), "tent", True), ((2,), "sar", True)]
    two = squads(particles=2, populations=2, lr=[0.0, 0.1, 0.0, 0.1])
    assert two == [((0,), "deyo", False), ((1,), "deyo", True)]
    # Somebody in another population learns.
    assert squads(particles=2, populations=2, lr=[0.0, 0.1, 0.1, 0.1]) == [((0, 1), "deyo", True)]


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
@pytest.mark.parametrize("kind", ["group", "batch"])
@pytest.mark.parametrize("method", [METHOD, Tent(), SAR(0.9)])
def test_apart_they_do_what_they_do_together(method: object, kind: str, engine: str) -> None:
    stream = small_stream(5, 6)
    options = {"method": method, "particles": 3, "engine": engine, "lenses": ["unchanged", "farther", "sharper"]}
    apart = run(adapter(kind, lr=[0.0, 0.02, 0.01], **options), stream)
    together = run(adapter(kind, lr=[TINY, 0.02, 0.01], **options), stream)
    for one, other in zip(apart, together, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-9)
    assert not torch.equal(apart[2][1], apart[2][2])


@pytest.mark.parametrize("kind", ["group", "batch"])
def test_who_has_a_pace_learns_as_if_the_others_were_not_there(kind: str) -> None:
    stream, options = small_stream(5, 6), {"statistics": "blend", "shared_noise": True}
    _, told, theta = run(adapter(kind, pace=[0.0, 0.1, 0.0, 0.2], particles=4, **options), stream)
    _, told_alone, theta_alone = run(adapter(kind, pace=[0.1, 0.2], particles=2, **options), stream)
    assert torch.allclose(theta[[1, 3]], theta_alone, rtol=0, atol=1e-9)
    assert torch.allclose(told[:, [1, 3]], told_alone, rtol=0, atol=1e-9)


@pytest.mark.parametrize("diversity", ["kl", "svgd", "grad"])
def test_whom_others_interact_with_takes_part_at_a_rate_of_zero(diversity: str) -> None:
    stream, options = small_stream(5, 6), {"method": Tent(), "diversity": diversity, "particles": 3}
    still = adapter(lr=[0.0, 0.02, 0.01], **options)
    assert still.config.never_learn == frozenset()
    found = run(still, stream)
    assert still.totals.backward_by_particle[0] > 0
    assert torch.equal(still.theta[0], still.source)
    for one, other in zip(found, run(adapter(lr=[TINY, 0.02, 0.01], **options), stream), strict=True):
        assert torch.equal(one, other)
    two = adapter(lr=[0.02, 0.01], **{**options, "particles": 2})
    run(two, stream)
    assert not torch.allclose(found[2][1:], two.theta, atol=1e-6), "the one that stays has been felt"


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
@pytest.mark.parametrize("kind", ["group", "batch"])
def test_two_populations_are_two_runs(kind: str, engine: str) -> None:
    options = {"preset": "recommended", "method": ["tent", METHOD], "engine": engine}
    options["lenses"] = ["unchanged", "farther", "much_sharper"]
    streams = [small_stream(6, 6, seed=seed) for seed in (0, 1)]
    both = polytta.adapt(small_model(kind), exclude=None, populations=2, seed=[3, 4], **options)
    answers, told, theta = run(both, [torch.stack(pair) for pair in zip(*streams, strict=True)])
    for number, stream in enumerate(streams):
        alone = polytta.adapt(small_model(kind), exclude=None, seed=3 + number, **options)
        own = slice(number * alone.config.particles, (number + 1) * alone.config.particles)
        found = run(alone, stream)
        for one, other in zip((answers[:, number], told[:, number], theta[own]), found, strict=True):
            assert torch.allclose(one, other, rtol=0, atol=1e-9)
        for name in ("stepped", "restarts", "backward_by_particle", "forward_by_particle"):
            assert getattr(both.totals, name)[own] == getattr(alone.totals, name)


def test_all_asleep_is_the_source_ensemble() -> None:
    adapted, (x,) = adapter(particles=3, lr=0.0, lenses=["unchanged", "farther", "sharper"]), small_stream(1, 6)
    model = small_model("group")
    lenses = (LENSES["optics"].transforms)[:3]
    mean = torch.stack([model(lens(x)).softmax(dim=-1) for lens in lenses]).mean(dim=0)
    assert torch.allclose(adapted(x).exp(), mean, rtol=0, atol=1e-9)
    assert adapted.totals.backward_samples == 0
    assert adapted.state_dict()["step"] == 1
