"""Methods that start over at every batch: what can be asked of them, and what cannot."""

import warnings

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import ConfigError
from polytta.methods import MEMO


def adapter(**arguments: object) -> polytta.Adapted:
    return polytta.adapt(small_model("group"), MEMO(copies=2), lr=0.05, exclude=None, **arguments)


def test_asking_first_builds_one_engine_and_tells_nothing() -> None:
    adapted, x = adapter(), small_stream(1, 4)[0]
    first = adapted.predict(x)
    (engine,) = adapted._session._engines.values()
    assert torch.equal(adapted.predict(x), first)
    assert list(adapted._session._engines.values()) == [engine]
    assert adapted.totals.steps == 0
    assert torch.equal(adapted(x), first)


def test_particles_answer_as_in_the_episode() -> None:
    adapted, stream = adapter(), small_stream(2, 4)
    adapted(stream[0])
    assert torch.allclose(adapted.particles_log_probs(stream[1]).exp().mean(0).log(), adapted.predict(stream[1]))


def test_a_rehearsal_does_not_use_up_the_warning_of_the_stream() -> None:
    adapted = adapter(lr_spread=0.0, shared_noise=True)
    stream = small_stream(7, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in stream[:4]:
            adapted(x)
        adapted.predict(stream[4])
    with pytest.warns(polytta.errors.PolyttaWarning, match="are still the same"):
        torch.stack([adapted(x) for x in stream[4:]])


def test_what_is_forgotten_cannot_be_frozen() -> None:
    adapted = adapter()
    adapted(small_stream(1, 4)[0])
    for verb in (adapted.freeze, adapted.merge):
        with pytest.raises(ConfigError, match="got an episodic method; allowed are methods that keep"):
            verb()
