"""The public calls: defaults, learning rates, and one clear sentence for each bad argument."""

import pytest
import torch

import polytta
from polytta.checks.networks import CLASSES, small_model, small_stream
from polytta.errors import ConfigError, InputError, ModelError, PolyttaError, PolyttaWarning
from polytta.methods import Tent
from polytta.optim import SGD, Adam


def test_three_lines() -> None:
    adapted = polytta.adapt(small_model("group", dtype=torch.float32), method="deyo", particles=3)
    for x in small_stream(3, 4, dtype=torch.float32):
        log_probs = adapted(x)
    assert log_probs.shape == (4, CLASSES)
    assert log_probs.dtype == torch.float32


def test_one_particle_of_the_source_is_log_softmax_of_the_model() -> None:
    model, x = small_model("group"), small_stream(1, 4)[0]
    for aggregate in ("probs", "logits"):
        adapted = polytta.adapt(model, "source", particles=1, aggregate=aggregate)
        assert torch.allclose(adapted(x), model(x).log_softmax(dim=1))


def test_the_reference_rule_is_applied_and_named() -> None:
    convolutional = polytta.adapt(small_model("group"), "deyo", particles=3)
    assert convolutional.settings.lr is None
    convolutional(small_stream(1, 1)[0])
    assert convolutional.settings.lr == pytest.approx([1.25e-5, 1.5625e-5, 1.875e-5])
    assert "convolutional model at batch size 1" in convolutional.lr_origin
    transformer = polytta.adapt(small_model("layer"), "tent", particles=1, batch_size=64, optimizer="adam")
    transformer(small_stream(1, 2)[0])
    assert transformer.settings.lr == pytest.approx([1e-4]), "Adam starts at a tenth of the rule"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"lr": 0.1}, [0.08, 0.1, 0.12]),
        ({"lr": [0.1, 0.2, 0.4]}, [0.1, 0.2, 0.4]),
        ({"lr": 0.1, "lr_spread": 0.0}, [0.1, 0.1, 0.1]),
        ({"optimizer": SGD(lr=0.5)}, [0.4, 0.5, 0.6]),
        ({"optimizer": [SGD(lr=0.5), SGD(lr=0.1), Adam(lr=0.2)]}, [0.5, 0.1, 0.2]),
    ],
)
def test_learning_rates_a_user_gives(arguments: dict[str, object], expected: list[float]) -> None:
    adapted = polytta.adapt(small_model("group"), "tent", **arguments)
    assert adapted.learning_rates.tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"particles": 0}, "particles: got 0; allowed is a whole number >= 1"),
        ({"particles": 2.5}, "particles: got 2.5"),
        ({"seed": -1}, "seed: got -1"),
        ({"num_classes": 1}, "num_classes: got 1"),
        ({"batch_size": 0}, "batch_size: got 0"),
        ({"engine": "vmap"}, "engine: got 'vmap'; allowed are"),
        ({"statistics": "running"}, "statistics: got 'running'"),
        ({"objective": "sum"}, "objective: got 'sum'"),
        ({"aggregate": "median"}, "aggregate: got 'median'; allowed are"),
        ({"diversity": "hope"}, "diversity: got 'hope'; allowed are"),
        ({"views": "spin"}, "views: got 'spin'; allowed are"),
        ({"lr": [0.1]}, "lr: got 1 values for 3 particles"),
        ({"lr": -0.1}, "lr: got -0.1; allowed are numbers from 0 to 1e.30"),
        ({"lr": float("nan")}, "lr: got nan"),
        ({"lr_spread": 1.5}, "lr_spread: got 1.5"),
        ({"optimizer": [SGD(lr=0.1), "sgd", "sgd"]}, "got some with an lr and some without"),
        ({"optimizer": SGD(lr=0.1), "lr": 0.2}, "beside an optimizer with its own lr"),
        ({"optimizer": 5}, "optimizer: got 5; allowed are"),
        ({"lr": "fast"}, "lr: got 'fast'; allowed are a number"),
        ({"views": 5}, "views: got 5; allowed are"),
        ({"targets": 5}, "targets: got 5; allowed are names"),
        ({"targets": []}, r"targets: got \[\]; allowed are names"),
        ({"lr_spread": "wide"}, "lr_spread, lr_span: got 'wide'"),
        ({"lr_span": float("inf")}, "lr_span: got inf"),
        ({"shared_noise": "no"}, "shared_noise: got 'no'"),
    ],
)
def test_bad_arguments_get_one_clear_sentence(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        polytta.adapt(small_model("group"), **arguments)
    assert isinstance(caught.value, PolyttaError)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_wrong_models_are_refused() -> None:
    with pytest.raises(ConfigError, match="model: got str"):
        polytta.adapt("resnet50")
    with pytest.raises(ModelError, match="TorchScript"):
        polytta.adapt(torch.jit.ScriptModule())
    with pytest.raises(ModelError, match="num_classes: got 7; allowed are 5"):
        polytta.adapt(small_model("group"), "tent", num_classes=7)(small_stream(1, 2)[0])


def test_identical_particles_are_worth_a_warning() -> None:
    adapted = polytta.adapt(small_model("group"), Tent(), particles=2, lr=0.01, lr_spread=0.0, exclude=None)
    stream = small_stream(6, 4)
    for x in stream[:4]:
        adapted(x)
    with pytest.warns(PolyttaWarning, match="2 particles are still the same after 5 steps"):
        adapted(stream[4])
    adapted(stream[5])


def test_compiled_models_are_looked_through() -> None:
    model = small_model("group")
    compiled = torch.compile(model, backend="eager")
    x = small_stream(1, 3)[0]
    assert torch.equal(polytta.adapt(compiled, "tent")(x), polytta.adapt(model, "tent")(x))


def test_methods_that_need_images_say_so() -> None:
    model = torch.nn.Sequential(torch.nn.LayerNorm(6), torch.nn.Linear(6, 3))
    with pytest.raises(InputError, match=r"DeYO's shuffle got shape \(4, 6\); allowed are images"):
        polytta.adapt(model, "deyo", exclude=None)(torch.randn(4, 6))
    with pytest.raises(InputError, match=r"horizontal_flip got shape \(4, 6\)"):
        polytta.adapt(model, "tent", views="flips", exclude=None)(torch.randn(4, 6))
