"""An adapter behaves like any other module."""

import copy
import io

import pytest
import torch

import polytta
from polytta.adapter import Adapted
from polytta.checks.networks import small_model, small_stream
from polytta.errors import StateError


def adapter(**arguments: object) -> Adapted:
    return polytta.adapt(small_model("group"), **{"method": "tent", "lr": 0.02, "exclude": None, **arguments})


def outputs(adapted: Adapted, steps: int = 4) -> torch.Tensor:
    return torch.stack([adapted(x) for x in small_stream(steps, 4)])


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_adapts_in_any_grad_mode(context: object) -> None:
    expected = outputs(adapter())
    adapted = adapter()
    with context():
        got = torch.stack([adapted(x.clone()) for x in small_stream(4, 4)])
        predicted = adapted.predict(small_stream(1, 4)[0].clone())
    assert torch.equal(got.clone(), expected)
    assert predicted.shape == (4, 5)


def test_a_model_born_in_inference_mode_can_be_adapted() -> None:
    with torch.inference_mode():
        model = small_model("batch")
    adapted = polytta.adapt(model, "tent", lr=0.02, exclude=None)
    adapted(small_stream(1, 4)[0])
    assert adapted.totals.stepped == (1, 1, 1)


def test_the_network_is_in_evaluation_mode_whatever_is_asked() -> None:
    model = small_model("batch").train()
    adapted = polytta.adapt(model, "tent", lr=0.02, exclude=None).train()
    outputs(adapted)
    assert model.training
    assert int(model.blocks[0].norm.num_batches_tracked) == 0
    assert torch.equal(model.blocks[0].norm.running_mean, torch.zeros(8, dtype=torch.float64))


def test_a_hundred_batches_leave_the_source_bit_unchanged() -> None:
    model = small_model("batch")
    before = copy.deepcopy(model.state_dict())
    adapted = polytta.adapt(model, "sar", lr=0.02, exclude=None)
    for x in small_stream(100, 4):
        adapted(x)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(p.grad is not None for p in model.parameters())
    assert all(p.requires_grad for p in model.parameters())


def test_state_dict_moves_a_stream_to_another_adapter() -> None:
    expected = outputs(adapter(), 6)
    first, second = adapter(), adapter()
    stream = small_stream(6, 4)
    for x in stream[:3]:
        first(x)
    second.load_state_dict(first.state_dict())
    assert torch.equal(torch.stack([second(x) for x in stream[3:]]), expected[3:])


def test_a_wrong_state_dict_changes_nothing() -> None:
    adapted = adapter()
    outputs(adapted)
    before = copy.deepcopy(adapted.state_dict())
    for change, message in (
        (lambda s: s.pop("theta"), "got 'theta' missing or unknown"),
        (lambda s: s.update(extra=torch.zeros(1)), "got 'extra' missing or unknown"),
        (lambda s: s.update(theta=s["theta"][:1]), "for 'theta'; allowed is"),
        (lambda s: s["theta"].fill_(torch.nan), "that no step leaves behind"),
        (lambda s: s.clear(), "no complete adaptation state"),
    ):
        state = copy.deepcopy(before)
        change(state)
        with pytest.raises(StateError, match=message):
            adapted.load_state_dict(state)
    assert all(torch.equal(value, before[name]) for name, value in adapted.state_dict().items())


def test_to_moves_the_adapter_and_not_the_model() -> None:
    model = small_model("group", dtype=torch.float32)
    adapted = polytta.adapt(model, "tent", lr=0.02, exclude=None)
    adapted(small_stream(1, 4, dtype=torch.float32)[0])
    adapted.double()
    log_probs = adapted(small_stream(1, 4)[0])
    assert log_probs.dtype == torch.float64
    assert adapted.theta.dtype == torch.float64
    assert next(model.parameters()).dtype == torch.float32


def test_pickle_and_deepcopy() -> None:
    adapted = adapter()
    outputs(adapted)
    file = io.BytesIO()
    torch.save(adapted, file)
    file.seek(0)
    restored = torch.load(file, weights_only=False)
    x = small_stream(1, 4, seed=5)[0]
    assert torch.equal(restored(x), copy.deepcopy(adapted)(x))
    twin = copy.deepcopy(adapted)
    shared = {p.data_ptr() for p in adapted.source_network.parameters()}
    assert {p.data_ptr() for p in twin.source_network.parameters()} == shared


def test_adapt_only_updates_and_particles_can_be_read() -> None:
    one, two = adapter(), adapter()
    x = small_stream(1, 4)[0]
    one(x)
    report = two.adapt(x)
    assert torch.equal(one.theta, two.theta)
    assert report is two.last
    assert two.particles_log_probs(x).shape == (3, 4, 5)
    assert torch.allclose(two.particles_log_probs(x).exp().mean(0).log(), two.predict(x))
    assert list(two.particle(1)) == [
        "blocks.0.norm.weight",
        "blocks.0.norm.bias",
        "blocks.1.norm.weight",
        "blocks.1.norm.bias",
    ]


def test_predicting_first_decides_nothing() -> None:
    predicted, fresh = (polytta.adapt(small_model("group"), "sar", exclude=None) for _ in range(2))
    keys = set(predicted.state_dict())
    predicted.predict(small_stream(1, 1)[0])
    assert set(predicted.state_dict()) == keys
    assert predicted.settings.lr is None
    x = small_stream(1, 40)[0]
    assert torch.equal(predicted(x), fresh(x))
    assert predicted.settings == fresh.settings


@pytest.mark.parametrize("num_classes", [None, 5])
def test_a_state_from_before_the_stream_starts_it_again(num_classes: int | None) -> None:
    adapted = polytta.adapt(small_model("group"), "tent", num_classes=num_classes, exclude=None)
    before = copy.deepcopy(adapted.state_dict())
    first = outputs(adapted)
    adapted.load_state_dict(before)
    assert torch.equal(outputs(adapted), first)
    with pytest.raises(StateError, match="got one of 7 classes; allowed are 5"):
        adapted.load_state_dict({**before, "classes": torch.tensor(7)})


def test_converting_a_copy_leaves_the_original_alone() -> None:
    adapted = adapter()
    expected = outputs(copy.deepcopy(adapted))
    with torch.inference_mode():
        twin = copy.deepcopy(adapted).float()
    twin(small_stream(1, 4, dtype=torch.float32)[0])
    assert torch.equal(outputs(adapted), expected)


def test_as_part_of_another_module_it_tells_what_is_missing_and_what_is_wrong() -> None:
    parent = torch.nn.ModuleDict({"head": torch.nn.Linear(2, 2), "adapted": adapter()})
    outputs(parent["adapted"])
    whole = parent.state_dict()
    other = torch.nn.ModuleDict({"head": torch.nn.Linear(2, 2), "adapted": adapter()})
    other.load_state_dict(whole)
    assert torch.equal(other["adapted"].theta, parent["adapted"].theta)
    found = other.load_state_dict({k: v for k, v in whole.items() if k.startswith("head")}, strict=False)
    assert "adapted.theta" in found.missing_keys
    with pytest.raises(RuntimeError, match="got 'theta' missing or unknown"):
        other.load_state_dict({k: v for k, v in whole.items() if k != "adapted.theta"})
