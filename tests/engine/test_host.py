"""A step of the default population can be recorded: nothing is read back to the host, nor brought from there."""

import pytest
import torch
from tests.dispatched import ON_THE_HOST, called_by

import polytta
from polytta.checks.networks import small_model, small_stream


@pytest.mark.parametrize(
    "settings", [{}, {"method": "deyo"}, {"guard": {"name": "strict", "reset_every": 2, "clip": 1.0}}]
)
@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
def test_a_step_of_the_default_stays_on_the_device(kind: str, settings: dict[str, object]) -> None:
    adapted = polytta.adapt(small_model(kind), engine="static", exclude=None, **{"guard": "default", **settings})
    stream = small_stream(3, 6)
    adapted(stream[0]), adapted(stream[1])
    session = adapted._session
    step = next(iter(session._steps.values()))[0]
    assert not called_by(lambda: step(session.state, stream[2].unsqueeze(0))) & ON_THE_HOST
    assert "aten::lift_fresh" in called_by(lambda: torch.zeros(1).new_tensor(2.0)), "the watch would not notice"
