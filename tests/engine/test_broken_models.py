"""A model that is broken is not taken for a calm one."""

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import ModelError, StateError


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("where", ["stem.weight", "blocks.0.norm.running_mean"])
def test_broken_weights_are_named(value: float, where: str) -> None:
    model = small_model("batch")
    with torch.no_grad():
        model.state_dict()[where].view(-1)[3] = value
    with pytest.raises(ModelError, match=f"got NaN or infinity in '{where}'; allowed are finite weights"):
        polytta.adapt(model)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("theta", torch.nan),
        ("learning_rates", -0.1),
        ("learning_rates", torch.inf),
        ("step", -1),
        ("optimizer_momentum", torch.nan),
        ("evidence_mean_probs", torch.nan),
        ("evidence_mean_probs", -0.5),
        ("evidence_images", -3.0),
        ("evidence_turn_near", torch.inf),
        ("pace_square", torch.nan),
    ],
)
def test_a_state_with_values_that_no_step_leaves_is_refused_whole(name: str, value: float) -> None:
    adapted = polytta.adapt(small_model("group"), exclude=None)
    for x in small_stream(3, 4):
        adapted(x)
    state = {key: tensor.clone() for key, tensor in adapted.state_dict().items()}
    key = next(one for one in state if one == name or one.startswith(name))
    state[key].view(-1)[0] = value
    before = {one: tensor.clone() for one, tensor in adapted.state_dict().items()}
    with pytest.raises(StateError, match=f"got a value in '{key}' that no step leaves behind; allowed are"):
        adapted.load_state_dict(state)
    for one, tensor in adapted.state_dict().items():
        assert torch.equal(tensor, before[one])
