"""Models are called as their libraries do, and whatever they return, their logits are found or asked for."""

import copy
import pickle
from collections import namedtuple
from collections.abc import Callable

import numpy as np
import pytest
import torch
from tests.extras import needs
from torch import Tensor, nn

import polytta
from polytta.errors import ConfigError, InputError, ModelError, PolyttaWarning
from polytta.network.calling import keyword_of

Heads = namedtuple("Heads", ["logits", "aux"])


def undressed(logits: Tensor, features: Tensor) -> Tensor:
    return logits


def in_a_dictionary(logits: Tensor, features: Tensor) -> object:
    return {"prediction": logits, "map": features[:, :, None]}


class Net(nn.Module):
    """A classifier whose output a test dresses up."""

    def __init__(self, dress: Callable[[Tensor, Tensor], object] = undressed) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.Linear(8, 5)
        self.dress = dress

    def forward(self, x: Tensor) -> object:
        features = self.norm(self.first(x)).relu().mean(dim=(2, 3))
        return self.dress(self.head(features), features)


class ByKeyword(Net):
    def forward(self, *, pixel_values: Tensor) -> object:
        return super().forward(pixel_values)


class TextFirst(Net):
    def forward(self, input_ids: Tensor | None = None, pixel_values: Tensor | None = None) -> object:
        assert pixel_values is not None
        return super().forward(pixel_values)


class OfBytes(Net):
    """Scales within; ``only_bytes`` as torchvision's ToDtype(scale=True) does."""

    def __init__(self, only_bytes: bool) -> None:
        super().__init__()
        self.only_bytes = only_bytes

    def forward(self, x: Tensor) -> object:
        scale = 255 if not self.only_bytes or x.dtype == torch.uint8 else 1
        return super().forward(x.float() / scale - 0.5)


def images(count: int = 4) -> Tensor:
    return torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def logits_of(model: Net, x: Tensor) -> Tensor:
    plain = copy.deepcopy(model)
    plain.dress = undressed
    return Net.forward(plain, x)


DRESSES: dict[str, Callable[[Tensor, Tensor], object]] = {
    "dictionary": lambda logits, features: {"features": features, "logits": logits},
    "dictionary of one": in_a_dictionary,
    "record": lambda logits, features: Heads(logits, logits * 2),
    "tuple": lambda logits, features: (logits,),
    "tuple with more": lambda logits, features: (logits, None, features[:, :, None]),
    "list of heads": lambda logits, features: [logits, logits * 2],
}


@pytest.mark.parametrize("dress", DRESSES.values(), ids=list(DRESSES))
@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
def test_usual_outputs_are_understood(dress: Callable[[Tensor, Tensor], object], engine: str) -> None:
    model, x = Net(dress), images()
    dressed = polytta.adapt(model, "tent", exclude=None, lr=0.1, engine=engine)
    plain = polytta.adapt(Net(), "tent", exclude=None, lr=0.1, engine=engine)
    for _ in range(3):
        assert torch.equal(dressed(x), plain(x))
    assert torch.equal(dressed.freeze()(x), plain.freeze()(x))
    assert type(model(x)) is type(Net(dress)(x)), "the user's own model was changed"


@pytest.mark.parametrize(
    ("dress", "output"),
    [
        (lambda logits, features: (features, logits), 1),
        (lambda logits, features: {"a": features, "b": logits}, "b"),
        (lambda logits, features: {"heads": (logits,)}, lambda out: out["heads"][0]),
        (lambda logits, features: type("Record", (), {"scores": logits})(), "scores"),
    ],
)
def test_unusual_outputs_are_asked_for(dress: Callable[[Tensor, Tensor], object], output: object) -> None:
    model, x = Net(dress), images()
    with pytest.raises(ModelError, match=r"for 3 images; allowed is a \(B, C\) tensor of logits, or output= of"):
        polytta.adapt(model, "tent", exclude=None)(x)
    told = polytta.adapt(model, "source", output=output, exclude=None)(x)
    assert torch.allclose(told, logits_of(model, x).log_softmax(1), atol=1e-6)


@pytest.mark.parametrize("dress", DRESSES.values(), ids=list(DRESSES))
def test_probabilities_are_found_in_whatever_holds_them(dress: Callable[[Tensor, Tensor], object]) -> None:
    model, x = Net(lambda logits, features: dress(logits.softmax(1), features)), images()
    told = polytta.adapt(model, "source", output="probabilities", exclude=None)(x)
    assert torch.allclose(told, logits_of(model, x).log_softmax(1), atol=1e-6)


def test_what_cannot_be_an_output_is_refused() -> None:
    with pytest.raises(
        ModelError, match=r"output: got 'probabilities' of tuple of \(.*; allowed is a model that returns"
    ):
        polytta.adapt(Net(lambda y, z: (z, y)), output="probabilities")(images())
    with pytest.raises(ModelError, match="output: got 'scores'; allowed is something in dict of 'a'"):
        polytta.adapt(Net(lambda y, z: {"a": y, "b": z}), output="scores")(images())
    with pytest.raises(ConfigError, match=r"output: got 1\.5; allowed are a function"):
        polytta.adapt(Net(), output=1.5)
    with pytest.raises(ConfigError, match="input: got 3; allowed are a function"):
        polytta.adapt(Net(), input=3)


def test_a_model_that_returns_probabilities_is_noticed() -> None:
    model, x = Net(lambda logits, features: logits.softmax(dim=1)), images()
    with pytest.warns(PolyttaWarning, match="returns probabilities.*output='probabilities'") as seen:
        polytta.adapt(model, "source", exclude=None)(x)
    assert len(seen) == 1
    told = polytta.adapt(model, "source", exclude=None, output="probabilities")(x)
    assert torch.allclose(told, logits_of(model, x).log_softmax(1), atol=1e-6)


def test_images_go_in_by_the_name_the_model_has_for_them() -> None:
    x = images()
    expected = polytta.adapt(Net(), "tent", exclude=None, lr=0.1)(x)
    for model in (ByKeyword(), TextFirst()):
        assert keyword_of(model) == "pixel_values"
        for engine in ("folded", "loop"):
            adapted = polytta.adapt(model, "tent", exclude=None, lr=0.1, engine=engine)
            assert torch.allclose(adapted(x), expected, atol=1e-6)
    assert keyword_of(Net()) is None


def test_batches_may_be_mappings_and_named() -> None:
    x = images()
    batch = {"pixel_values": x, "labels": torch.zeros(4)}
    told = [polytta.adapt(Net(), "tent", exclude=None) for _ in range(4)]
    answers = [told[0](x), told[1](batch), told[2](**batch), told[3]({"image": x, "label": torch.zeros(4)})]
    assert all(torch.equal(answers[0], one) for one in answers[1:])
    with pytest.raises(InputError, match=r"x: got a mapping of \['label'\]; allowed is one that holds 'pixel_values'"):
        told[0]({"label": torch.zeros(4)})


class OfTwo(Net):
    def forward(self, x: Tensor, meta: Tensor | None = None, labels: Tensor | None = None) -> object:
        assert meta is not None
        return super().forward(x + meta.mean())


def test_inputs_beside_the_images_are_refused_and_labels_are_not() -> None:
    x, meta = images(), torch.zeros(4, 2)
    both = polytta.adapt(OfTwo(), "source", exclude=None, input=lambda batch: {"x": batch, "meta": meta})
    with pytest.raises(
        InputError, match=r"x: got a mapping of \['x', 'meta'\], all of which OfTwo takes; .*be wrapped"
    ):
        both(x)
    for batch in ((x, meta), [x, meta]):
        with pytest.raises(InputError, match=r"x: got a (tuple|list) of 2; allowed .* has to be wrapped"):
            polytta.adapt(OfTwo(), "source", exclude=None)(batch)
    assert polytta.adapt(Net(), "source", exclude=None)({"x": x, "labels": meta}).shape == (4, 5)
    assert polytta.adapt(TextFirst(), "source", exclude=None, input="pixel_values")(
        {"input_ids": meta, "pixel_values": x}
    ).shape == (4, 5)


@pytest.mark.parametrize("only_bytes", [False, True])
def test_bytes_are_for_models_that_take_bytes(only_bytes: bool) -> None:
    x = torch.randint(256, (4, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    model = OfBytes(only_bytes)
    told = polytta.adapt(model, "source", exclude=None)(x)
    assert torch.allclose(told, model(x).log_softmax(1), atol=1e-5)


def test_bytes_for_other_models_need_to_be_made_images_of() -> None:
    frames = np.random.default_rng(0).integers(256, size=(4, 8, 8, 3), dtype=np.uint8)
    bytes_ = torch.from_numpy(frames).permute(0, 3, 1, 2)
    for batch, got in ((bytes_, "torch.uint8"), (frames, "ndarray"), (bytes_.int(), "torch.int32")):
        with pytest.raises(InputError, match=rf"x: got {got}.*or input= of polytta.adapt"):
            polytta.adapt(Net(), "source", exclude=None)(batch)

    def made(batch: np.ndarray) -> Tensor:
        return torch.from_numpy(batch).permute(0, 3, 1, 2) / 255 - 0.5

    adapted = polytta.adapt(Net(), "source", input=made, exclude=None)
    assert torch.allclose(adapted(frames), Net()(made(frames)).log_softmax(1), atol=1e-6)
    assert torch.equal(adapted.predict(frames), adapted.particles_log_probs(frames)[0])


def test_copies_and_states_go_on(tmp_path: object) -> None:
    x = images()
    adapted = polytta.adapt(Net(in_a_dictionary), "tent", exclude=None)
    adapted(x)
    twin = copy.deepcopy(adapted)
    adapted.save(f"{tmp_path}/state")
    loaded = polytta.load(f"{tmp_path}/state", Net(in_a_dictionary))
    expected = adapted(x)
    assert torch.equal(twin(x), expected)
    assert torch.equal(loaded(x), expected)
    assert torch.equal(pickle.loads(pickle.dumps(loaded))(x), adapted(x))


def test_a_call_that_fails_says_how_to_call_otherwise() -> None:
    class Two(Net):
        def forward(self, mask: Tensor, x: Tensor) -> object:
            return super().forward(x * mask)

    with pytest.raises(InputError, match=r"or those that input= of polytta\.adapt makes; it said: .*forward"):
        polytta.adapt(Two(), "tent", exclude=None)(images())
    assert polytta.adapt(ByKeyword(), "tent", exclude=None, input="pixel_values")(images()).shape == (4, 5)


@needs("timm")
@needs("transformers")
def test_models_of_transformers_timm_and_torchvision() -> None:
    from tests.particles import zoo

    tiny = {**zoo._TINY, "num_labels": 10}
    transformers = zoo.transformers
    deit = transformers.DeiTConfig(**tiny)
    models: list[nn.Module] = [
        transformers.ViTForImageClassification(transformers.ViTConfig(**tiny)),
        transformers.DeiTForImageClassification(deit),
        transformers.DeiTForImageClassificationWithTeacher(deit),
    ]
    for model in models:
        x = torch.randn(2, 3, 32, 32)
        adapted = polytta.adapt(model, "source")
        told = adapted(pixel_values=x)
        with torch.no_grad():
            assert torch.allclose(told, model.eval()(pixel_values=x).logits.log_softmax(1), atol=1e-5)
    distilled = zoo.timm_model("deit_tiny_distilled_patch16_224", num_classes=10, img_size=32)
    assert polytta.adapt(distilled.train(), "tent")(torch.randn(2, 3, 32, 32)).shape == (2, 10)
    heads = zoo.torchvision.models.googlenet(weights=None, init_weights=False, num_classes=10, aux_logits=True)
    assert polytta.adapt(heads.train(), "source")(torch.randn(2, 3, 64, 64)).shape == (2, 10)
