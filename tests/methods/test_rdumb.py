"""RDumb: step-by-step agreement with the public implementation, and resets."""

import pytest
import torch
from tests.methods.recorded_rivals import CASES, replay

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import ConfigError
from polytta.methods import EATA, RDumb

RECORDED = [name for name, case in CASES.items() if case["method"] == "rdumb"]


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
@pytest.mark.parametrize("name", RECORDED)
def test_agrees_with_the_public_implementation(name: str, engine: str) -> None:
    replay(name, engine)


def test_without_resets_it_is_eata() -> None:
    answers = []
    for method in (RDumb(redundancy=0.9, reset_every=0), EATA(redundancy=0.9)):
        adapted = polytta.adapt(small_model("group"), method, lr=0.01, exclude=None)
        answers.append(torch.stack([adapted(x) for x in small_stream(6, 6)]))
    assert torch.equal(*answers)


def test_every_reset_is_a_fresh_start() -> None:
    stream = small_stream(8, 6)
    adapted = polytta.adapt(small_model("batch"), RDumb(redundancy=0.9, reset_every=4), lr=0.01, exclude=None)
    resets = []
    for x in stream:
        adapted(x)
        resets.append(adapted.last.reset[0])
        assert bool((adapted.theta == adapted.source).all()) is resets[-1]
    assert resets == [step % 4 == 3 for step in range(8)]
    fresh = polytta.adapt(small_model("batch"), RDumb(redundancy=0.9, reset_every=4), lr=0.01, exclude=None)
    once = [fresh(x) for x in stream[:4]]
    again = [fresh(x) for x in stream[:4]]
    assert all(torch.equal(one, two) for one, two in zip(once, again, strict=True))


@pytest.mark.parametrize("method", [RDumb(reset_every=-1), RDumb(window=0), RDumb(window=2.5), RDumb(reset_every=True)])
def test_bad_values_get_one_clear_sentence(method: RDumb) -> None:
    with pytest.raises(ConfigError, match=r"method: got RDumb\(window=.*; allowed are whole numbers, window >= 1"):
        polytta.adapt(small_model("group"), method)


def test_its_own_name_is_in_what_eata_refuses() -> None:
    with pytest.raises(ConfigError, match=r"got RDumb\(entropy_threshold=-1"):
        polytta.adapt(small_model("group"), RDumb(entropy_threshold=-1))
