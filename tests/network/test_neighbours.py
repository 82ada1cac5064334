"""Images that bend the statistics of a batch: set aside in every engine, and nobody else."""

from typing import Any

import pytest
import torch
from tests.dispatched import ON_THE_HOST, called_by
from torch import Tensor

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.network.neighbours import FEWEST, Company, moments, quiet

ENGINES = ("loop", "folded", "static")
LOUD = 3
SETTINGS: dict[str, dict[str, Any]] = {
    "norm": {"method": "norm", "particles": 1},
    "tent": {"method": "tent", "particles": 2, "lr": 1e-3},
    "sar": {"method": "sar", "particles": 1, "lr": 1e-3},
    "deyo": {"method": {"name": "deyo", "plpd_threshold": -1.0}, "particles": 2, "lr": 1e-3},
    "kinds": {"method": "tent", "particles": 3, "lr": 1e-3, "statistics": ["batch", "blend", "source"]},
}


def crowd(batch: int = 16) -> Tensor:
    """The last few shout, and not all in the same way."""
    (x,) = small_stream(1, batch)
    x[-LOUD:] = 30 * x[-LOUD:] + 5
    return x


def adapter(engine: str = "folded", *, guard: str = "default", **settings: Any) -> polytta.Adapted:
    return polytta.adapt(small_model("batch"), exclude=None, engine=engine, guard=guard, **settings)


def test_loud_images_do_not_count_and_quiet_ones_do() -> None:
    x = crowd()
    everybody = torch.ones(1, len(x), dtype=torch.bool)
    mean, var = (one.unsqueeze(0) for one in moments(x))
    assert quiet(mean, var, everybody)[0].tolist() == [True] * (len(x) - LOUD) + [False] * LOUD
    # Nobody is asked who is not there, and he does not change what is the middle.
    among = everybody.clone()
    among[0, :2] = False
    found = quiet(mean, var, among)
    assert found.tolist() == (among & quiet(mean, var, everybody)).tolist()
    few = torch.zeros_like(everybody)
    few[0, -FEWEST + 1 :] = True
    assert torch.equal(quiet(mean, var, few), few), "too few to have a middle"


@pytest.mark.parametrize("on_host", [True, False])
def test_many_loud_images_do_not_hide_some_of_them(on_host: bool) -> None:
    (x,) = small_stream(1, 20)
    x[12:16] *= 8
    x[16:] *= 3
    mean, var = (one.unsqueeze(0) for one in moments(x))
    shouting = torch.arange(20) >= 12
    at_first = quiet(mean, var, None)[0]
    assert bool((at_first & shouting).any()), "the test needs some that pass"
    found = Company(None, 0, on_host=on_host).counted("layer", lambda: (mean, var, None))
    assert found is not None
    assert torch.equal(found[0], ~shouting)


def test_flat_and_equal_images_are_no_reason_for_anything() -> None:
    for x in (torch.zeros(16, 3, 8, 8), torch.ones(16, 3)):
        mean, var = (one.unsqueeze(0) for one in moments(x))
        assert bool(quiet(mean, var, torch.ones(1, 16, dtype=torch.bool)).all())


def test_a_layer_that_is_run_again_finds_what_it_found() -> None:
    company, everybody = Company(None, 1, on_host=True), torch.ones(1, 16, dtype=torch.bool)
    mean, var = (one.unsqueeze(0) for one in moments(crowd()))
    assert company.counted("first", lambda: None) is None
    found = company.counted("second", lambda: (mean, var, everybody))
    assert found is not None
    assert company.sets_aside
    assert company.counted("first", lambda: None) is None
    assert company.counted("third", lambda: None) is found


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=list(SETTINGS))
def test_engines_set_the_same_images_aside(settings: dict[str, Any]) -> None:
    found = []
    for engine in ENGINES:
        adapted = adapter(engine, **settings)
        answers = [adapted(x) for x in (crowd(), *small_stream(2, 16))]
        found.append((torch.stack(answers), adapted.theta))
    free = adapter(guard="off", **settings)
    assert float((free(crowd()) - found[0][0][0]).abs().max()) > 0.01, "the test needs a difference"
    for answers, theta in found[1:]:
        assert torch.allclose(answers, found[0][0], rtol=0, atol=1e-6)
        assert torch.allclose(theta, found[0][1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("engine", ["folded", "loop"])
def test_without_loud_images_nothing_changes(engine: str) -> None:
    guarded, free = (adapter(engine, guard=guard, method="tent", particles=2, lr=1e-4) for guard in ("default", "off"))
    for x in small_stream(3, 16):
        assert torch.equal(guarded(x), free(x))


def test_a_wary_step_stays_on_the_device() -> None:
    adapted = adapter("static", method="tent", particles=2, lr=1e-3)
    adapted(crowd())
    step, state = next(iter(adapted._session._steps.values()))[0], adapted._session.state
    called = called_by(lambda: step(state, crowd().unsqueeze(0)))
    assert "aten::sort" in called, "the test needs a look"
    assert not called & ON_THE_HOST
