"""A step of the default population can be recorded: nothing is read back to the host, nor brought from there."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import polytta
from polytta.checks.networks import small_model, small_stream

# The last is how a number of Python's becomes a tensor.
ON_THE_HOST = {"aten::_local_scalar_dense", "aten::nonzero", "aten::equal", "aten::is_nonzero", "aten::lift_fresh"}


@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
def test_a_step_of_the_default_stays_on_the_device(kind: str) -> None:
    adapted = polytta.adapt(small_model(kind), engine="static", exclude=None)
    stream = small_stream(3, 6)
    adapted(stream[0]), adapted(stream[1])
    called: set[str] = set()

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            called.add(func._schema.name)
            return func(*args, **(kwargs or {}))

    session = adapted._session
    step = session._steps[session.asleep][0]
    with Watch():
        step(session.state, stream[2].unsqueeze(0))
    assert not called & ON_THE_HOST
    with Watch():
        torch.zeros(1).new_tensor(2.0)
    assert "aten::lift_fresh" in called, "the watch would not notice"
