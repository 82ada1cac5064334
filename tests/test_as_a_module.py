"""An adapter is a module among others: in a parent, in another process, in the hands of other libraries."""

import multiprocessing

import pytest
import torch
from tests.extras import needs
from torch import Tensor, nn

import polytta
from polytta.adapter import Adapted
from polytta.checks.networks import small_model, small_stream
from polytta.errors import StateError
from polytta.network.copies import share_structure


class Parent(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.adapted = polytta.adapt(model)

    def forward(self, x: Tensor) -> Tensor:
        return self.adapted(x)


def other_weights() -> nn.Module:
    model = small_model("group")
    with torch.no_grad():
        next(model.parameters()).add_(0.1)
    return model


@pytest.mark.parametrize("steps", [0, 3])
def test_a_parents_state_is_taken_before_and_after_the_first_batch(steps: int) -> None:
    one, two = Parent(small_model("group")), Parent(small_model("group"))
    for x in small_stream(3, 4):
        one(x)
    for x in small_stream(steps, 4, seed=5):
        two(x)
    two.load_state_dict(one.state_dict())
    x = small_stream(1, 4, seed=7)[0]
    assert torch.equal(two(x), one(x))


def test_a_state_of_other_weights_is_refused_in_a_parent_too() -> None:
    one, two = Parent(small_model("group")), Parent(other_weights())
    for x in small_stream(2, 4):
        one(x), two(x)
    before = two.adapted.theta.clone()
    with pytest.raises(RuntimeError, match="belongs to a model with other weights"):
        two.load_state_dict(one.state_dict())
    with pytest.raises(StateError, match="belongs to a model with other weights"):
        two.adapted.load_state_dict(one.adapted.state_dict())
    assert torch.equal(two.adapted.theta, before)
    older = {name: value for name, value in one.adapted.state_dict().items() if name != "source_fingerprint"}
    two.adapted.load_state_dict(older)


def answer_there(adapted: Adapted, x: Tensor, answers: "multiprocessing.Queue[object]") -> None:
    answers.put(adapted(x).tolist())


def test_a_stepped_adapter_goes_on_in_a_spawned_process() -> None:
    adapted = polytta.adapt(nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 3)), "tent", exclude=None)
    adapted(torch.randn(4, 6))
    context = torch.multiprocessing.get_context("spawn")
    answers = context.Queue()
    x = torch.randn(4, 6)
    process = context.Process(target=answer_there, args=(adapted, x, answers))
    process.start()
    there = torch.tensor(answers.get(timeout=120))
    process.join()
    assert torch.equal(there, adapted(x))
    assert adapted._session.__getstate__()["_engine"] is None, "recorded steps cannot travel"


def test_the_first_parameter_says_where_the_model_is() -> None:
    parent = Parent(small_model("group"))
    assert next(parent.parameters()).dtype == torch.float64
    assert next(parent.float().parameters()).dtype == torch.float32
    assert not any(parameter.requires_grad for parameter in parent.parameters())
    assert "adapted.where" not in parent.state_dict()


def test_tensors_with_a_history_may_be_kept_anywhere_in_a_model() -> None:
    """As LeViT keeps biases in a dictionary after a pass with gradients."""

    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.kept = nn.LayerNorm(4), {}

        def forward(self, x: Tensor) -> Tensor:
            self.kept.setdefault("bias", [self.norm.bias * 2])
            return self.norm(x) + self.kept["bias"][0]

    model = Keeps()
    model(torch.randn(2, 4)).sum().backward()
    copied = share_structure(model)
    assert torch.equal(copied.kept["bias"][0], model.kept["bias"][0])
    assert not copied.kept["bias"][0].requires_grad
    assert polytta.adapt(model, "tent", exclude=None)(torch.randn(2, 4)).shape == (2, 4)


@needs("timm")
@pytest.mark.parametrize("name", ["levit_128s", "efficientformerv2_s0"])
def test_timm_models_that_keep_biases(name: str) -> None:
    from tests.particles.zoo import timm_model

    model = timm_model(name, num_classes=4).eval()
    x = torch.randn(1, 3, 224, 224)
    model(x).sum().backward()
    assert polytta.adapt(model, "source")(x).shape == (1, 4)
