"""Zero-shot classifiers from the libraries' own models with random weights, and every method on them."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from tests.clip.tiny_clip import BOOK, tiny_clip, tokenize
from tests.extras import needs
from torch import Tensor, nn
from torch.nn import functional as F

import polytta
from polytta.checks.networks import small_clip, small_stream
from polytta.clip import TEMPLATES, ZeroShot, text, zero_shot
from polytta.errors import ConfigError, InputError, ModelError
from polytta.methods import TDA, TPT, WATTP, WATTS, CLIPArTT, DiffTPT, tpt
from polytta.models._torchvision_cpu import import_zoo

CLASSES = ("cat", "dog", "fire truck")
METHODS: list[dict[str, Any]] = [
    {"method": "source"},
    {"method": "tent", "steps": 2, "episodic": True},
    {"method": "deyo", "diversity": "grad"},
    {"method": WATTS(steps=1, rounds=1, order="own"), "diversity": "kl", "optimizer": "adam"},
    {"method": WATTP(steps=1, rounds=1), "optimizer": "adam"},
    {"method": CLIPArTT(classes=2, steps=1), "optimizer": "adam"},
    {"method": TPT(views=2, share=0.5)},
    {"method": DiffTPT(views=1, share=0.5, steps=1, generator=lambda x, noise: [x.flip(-1)])},
    {"method": TDA()},
]


def letters(sentences: Sequence[str]) -> Tensor:
    """In place of SigLIP's tokenizer, whose vocabulary is not in its library: 64 numbers of letters."""
    return torch.stack([torch.tensor([ord(c) for c in one.ljust(64)[:64]]) for one in sentences])


Made = tuple[nn.Module, Callable[..., Any], int]


def small_open_clip(vision: dict[str, Any]) -> Made:
    library = import_zoo("open_clip")
    text = {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
    return library.CLIP(embed_dim=8, vision_cfg=vision, text_cfg=text), library.get_tokenizer("ViT-B-32"), 32


def small_of_transformers(kind: str) -> Made:
    library = import_zoo("transformers")
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    image = {**sizes, "image_size": 32, "patch_size": 8}
    if kind == "clip":
        config = library.CLIPConfig(text_config=sizes, vision_config=image, projection_dim=8)
        return library.CLIPModel(config), import_zoo("open_clip").get_tokenizer("ViT-B-32"), 32
    return library.SiglipModel(library.SiglipConfig(text_config=sizes, vision_config=image)), letters, 32


def big_open_clip(name: str) -> Made:
    library = import_zoo("open_clip")
    return library.create_model(name, pretrained=None), library.get_tokenizer(name), 224


def big_of_transformers(kind: str) -> Made:
    library = import_zoo("transformers")
    if kind == "clip":
        return library.CLIPModel(library.CLIPConfig()), import_zoo("open_clip").get_tokenizer("ViT-B-32"), 224
    return library.SiglipModel(library.SiglipConfig()), letters, 224


VIT = {"layers": 1, "width": 64, "patch_size": 16, "image_size": 32, "head_width": 32}
SMALL = {
    "open_clip ViT": lambda: small_open_clip(VIT),
    "open_clip ResNet": lambda: small_open_clip({"layers": [1, 1, 1, 1], "width": 8, "image_size": 32}),
    "transformers CLIP": lambda: small_of_transformers("clip"),
    "transformers SigLIP": lambda: small_of_transformers("siglip"),
}
BIG = {
    "open_clip ViT-B-32": lambda: big_open_clip("ViT-B-32"),
    "open_clip RN50": lambda: big_open_clip("RN50"),
    "transformers CLIP": lambda: big_of_transformers("clip"),
    "transformers SigLIP": lambda: big_of_transformers("siglip"),
}


@needs("open_clip")
@needs("transformers")
@pytest.mark.parametrize(
    "make",
    [
        *(pytest.param(make, id=f"small {name}") for name, make in SMALL.items()),
        *(pytest.param(make, id=name, marks=pytest.mark.big) for name, make in BIG.items()),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_every_method_runs_on_real_models(make: Callable[[], Made]) -> None:
    torch.manual_seed(0)
    model, tokenizer, size = make()
    model.eval()
    network = zero_shot(model, tokenizer, CLASSES, ("a photo of a {}", "art of the {}."))
    x = torch.randn(2, 3, size, size)
    with torch.no_grad():
        wanted = expected_logits(model, tokenizer, x)
        assert torch.allclose(network(x), wanted, atol=1e-4)
    shared = {parameter.data_ptr() for parameter in model.parameters()}
    assert all(parameter.data_ptr() in shared for parameter in network.parameters()), "weights are shared, not copied"
    assert not any("text" in layer for layer in polytta.adapt(network, "tent", exclude=None).config.layers)
    for options in METHODS:
        adapted = polytta.adapt(network, **{"particles": 2, "lr": 1e-3, "exclude": None, **options})
        answer = adapted(x)
        assert answer.shape == (2, 3)
        assert bool(answer.isfinite().all()), options
    assert torch.allclose(network(x), wanted, atol=1e-4), "the source model is untouched"


def expected_logits(model: Any, tokenizer: Callable[..., Any], x: Tensor) -> Tensor:
    """Written with the library's own functions."""

    def unit(found: Any) -> Tensor:
        return nn.functional.normalize(found if isinstance(found, Tensor) else found.pooler_output, dim=-1)

    looks = model.encode_image if hasattr(model, "encode_image") else model.get_image_features
    reads = model.encode_text if hasattr(model, "encode_text") else model.get_text_features
    texts = [unit(reads(tokenizer([one.replace("{}", name) for name in CLASSES])))
             for one in ("a photo of a {}", "art of the {}.")]  # fmt: skip
    logits = model.logit_scale.exp() * unit(looks(x)) @ unit(torch.stack(texts).mean(dim=0)).T
    bias = getattr(model, "logit_bias", None)
    return logits if bias is None else logits + bias


def test_features_and_logits_are_those_of_the_model() -> None:
    clip = tiny_clip()
    network = zero_shot(clip, tokenize, BOOK["classes"], "photo")
    x = torch.randn(3, 3, 32, 32)
    image = nn.functional.normalize(clip.encode_image(x), dim=-1)
    text = nn.functional.normalize(
        clip.encode_text(tokenize([f"a photo of a {one}" for one in BOOK["classes"]])), dim=-1
    )
    assert torch.allclose(network(x), clip.logit_scale.exp() * image @ text.T, atol=1e-5)
    assert network.text_features.shape == (1, 10, 24)
    network.telling = True
    assert torch.allclose(network(x)[:, 10:], image, atol=1e-6)


def test_answers_may_have_templates_of_their_own() -> None:
    clip, names = tiny_clip(), BOOK["classes"]
    both = zero_shot(clip, tokenize, names, ("a photo of a {}", "my small {}."), answers="photo")
    assert both.text_features.shape[0] == 2
    assert torch.equal(both.class_features, zero_shot(clip, tokenize, names, "photo").class_features)


def test_everything_else_works_on_it(tmp_path: Any) -> None:
    """Lenses, evidence, state files, moving, copies, frozen forms."""
    network = small_clip()
    adapted = polytta.adapt(network)
    stream = small_stream(6, 4)
    for x in stream[:4]:
        adapted(x)
    adapted.save(tmp_path / "state.safetensors")
    back = polytta.load(tmp_path / "state.safetensors", small_clip())
    for x in stream[4:]:
        assert torch.equal(back(x), adapted(x))
    plain = polytta.adapt(network, "tent", particles=3)
    plain(stream[0])
    assert torch.allclose(plain.freeze("ensemble")(stream[1]), plain.predict(stream[1]))
    remembers = polytta.adapt(network, "tda", particles=1)
    remembers(stream[0])
    with pytest.raises(ConfigError, match="freeze: got 'tda', which answers from more than parameters"):
        remembers.freeze("ensemble")
    twin = copy.deepcopy(network)
    assert twin.text is network.text, "copies share the text encoder"
    assert torch.equal(twin(stream[0]), network(stream[0]))


@pytest.mark.parametrize("positive", [0, 2])
def test_caches_never_grow_and_go_on_bit_for_bit(tmp_path: Any, positive: int) -> None:
    from polytta.methods.tda import Cache

    method = TDA(positive=Cache(positive, 2.0, 5.0), entropies=(0.0, 1.0))
    adapted = polytta.adapt(small_clip(), method, particles=2)
    stream = small_stream(20, 3)
    sizes = None
    for x in stream[:10]:
        adapted(x)
        now = {name: value.shape for name, value in adapted.state_dict().items()}
        assert sizes in (None, now)
        sizes = now
    keys = adapted.state_dict()["method_negative_keys"]
    assert keys.shape == (2, 5, 2, 12)
    adapted.save(tmp_path / "state.safetensors")
    back = polytta.load(tmp_path / "state.safetensors", small_clip(), method=method)
    for x in stream[10:]:
        assert torch.equal(back(x), adapted(x))
    for name, value in adapted.state_dict().items():
        assert torch.equal(value.nan_to_num(), back.state_dict()[name].nan_to_num())


CLIP = tiny_clip()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"tokenizer": None}, "tokenizer: got NoneType; allowed is a callable"),
        ({"tokenizer": lambda _: "x"}, "tokenizer: got str for 1 sentences; allowed are"),
        (
            {"tokenizer": lambda texts: torch.zeros(len(texts), 4)},
            r"tokenizer: got \(1, 4\) of torch.float32 for 1 sen",
        ),
        (
            {"tokenizer": lambda texts: torch.full((len(texts), 16), 9999)},
            r"tokenizer: got \(1, 16\) token numbers up to 9999, which the text encoder cannot take; allowed is",
        ),
        (
            {"tokenizer": lambda texts: torch.ones(len(texts), 4, dtype=torch.int64)},
            r"got \(1, 4\) token numbers up to 1",
        ),
        ({"tokenizer": lambda _: 1 / 0}, "tokenizer: got ZeroDivisionError"),
        ({"classes": []}, r"classes: got \[\]; allowed are the names of two classes or more"),
        ({"classes": None}, "classes: got None; allowed are the names"),
        ({"classes": {"cat", "dog"}}, "classes: got {.*}; allowed are the names of two classes or more, in a list"),
        ({"classes": ["cat", "cat "]}, "classes: got 'cat' more than once"),
        ({"classes": "cat"}, "classes: got 'cat'; allowed are the names"),
        ({"classes": ["cat", " "]}, "classes: got"),
        ({"classes": ["cat", "dog", "cat"]}, "classes: got 'cat' more than once; allowed are different names"),
        ({"templates": "imagenet80"}, "templates: got 'imagenet80'; allowed are"),
        ({"templates": ["a photo"]}, "templates: got 'a photo'; allowed are sentences with one {}"),
        ({"templates": 5}, "templates: got 5; allowed"),
        ({"templates": []}, r"templates: got \[\]; allowed"),
        ({"model": CLIP.visual}, "model: got Visual without encode_image; allowed are models of open_clip"),
        ({"model": 3}, "model: got int without encode_image"),
    ],
)
def test_what_bad_input_gets(arguments: dict[str, Any], said: str) -> None:
    given = {"model": CLIP, "tokenizer": tokenize, "classes": ["cat", "dog"], "templates": "photo", **arguments}
    with pytest.raises((InputError, ModelError), match=said):
        zero_shot(**given)


def test_a_model_that_only_looks_is_named() -> None:
    class Looks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(1, 1)

        def encode_image(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(ModelError, match="got Looks without encode_text"):
        zero_shot(Looks(), tokenize, ["cat", "dog"])


@needs("open_clip")
def test_text_that_is_too_long_is_named() -> None:
    model, tokenizer, _ = small_open_clip(VIT)
    with pytest.raises(InputError, match=r"which takes 9[0-9] tokens; allowed are 77"):
        zero_shot(model, tokenizer, ["word " * 90, "cat"])


def test_images_of_another_size_get_one_sentence() -> None:
    adapted = polytta.adapt(zero_shot(CLIP, tokenize, ["cat", "dog"], "photo"), "tent")
    with pytest.raises(InputError, match=r"x: got images of shape \(3, 40, 40\)"):
        adapted(torch.randn(2, 3, 40, 40))


@pytest.mark.parametrize("method", ["watt_s", "watt_p", "clipartt", "tpt", "tda"])
def test_methods_that_read_need_a_model_that_does(method: str) -> None:
    from polytta.checks.networks import small_model

    with pytest.raises(ModelError, match=f"for method '{method}', which compares images with text; allowed is what"):
        polytta.adapt(small_model("layer"), method)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: WATTS(steps=0), r"watt_s\(steps=0\); allowed is a whole number >= 1"),
        (lambda: WATTP(order="any"), "watt_p.order='any'"),
        (lambda: CLIPArTT(target="all"), "CLIPArTT.target='all'"),
        (lambda: CLIPArTT(classes=9), r"CLIPArTT\(classes=9\) for 5 classes"),
        (lambda: TPT(share=0.0), "tpt.share=0.0"),
        (lambda: TPT(views=0), "tpt.views=0"),
        (lambda: TPT(context=" "), "tpt.context=' '"),
        (
            lambda: TPT(vectors=torch.zeros(3, 5)),
            r"tpt.vectors=\(3, 5\)\) for context 'a photo of a'; allowed are \(4, ",
        ),
        (lambda: DiffTPT(), r"DiffTPT\(generator=None\); allowed is a callable .*'polytta\[diffusion\]'"),
        (lambda: TDA(entropies=(0.5, 0.2)), r"TDA\(entropies=\(0.5, 0.2\)\); allowed is 0 <= low < high <= 1"),
    ],
)
def test_wrong_settings_of_methods_get_one_sentence(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        polytta.adapt(small_clip(), make())(small_stream(1, 4)[0])  # type: ignore[arg-type]


def test_a_classifier_of_a_library_is_a_zero_shot_one() -> None:
    assert isinstance(small_clip(), ZeroShot)
    assert len(TEMPLATES["watt8"]) == 8


@pytest.mark.parametrize("engine", ["loop", "folded", "static"])
def test_particles_with_templates_of_their_own_answer_by_them(engine: str) -> None:
    network, x = small_clip(), small_stream(1, 4)[0]
    adapted = polytta.adapt(network, "source", prompts="own", aggregate="evidence", engine=engine)
    assert adapted.config.particles == 3
    adapted(x)
    assert adapted.last_logits is not None
    unit = nn.functional.normalize(network.image(x), dim=-1)
    for number in range(3):
        expected = network.logit_scale.exp() * unit @ network.text_features[number].T
        assert torch.allclose(adapted.last_logits[number], expected)
    assert [hypothesis.axes["template"] for hypothesis in adapted.hypotheses] == [f"template {n}" for n in range(3)]


def test_who_learns_is_judged_against_who_reads_alike() -> None:
    adapted = polytta.adapt(small_clip(), "tent", prompts="own", particles=6, pace=[0, 0, 0, 0.1, 0.1, 0.1],
                            aggregate="evidence", exclude=None)  # fmt: skip
    assert adapted.config.anchors == (0, 1, 2, 0, 1, 2)
    for x in small_stream(4, 4):
        assert torch.equal(adapted.predict(x), adapted(x))
    assert min(adapted.totals.stepped[3:]) > 0
    with pytest.raises(ConfigError, match="freeze: got prompts 'own'"):
        adapted.freeze("ensemble")


def test_templates_of_their_own_need_templates() -> None:
    from polytta.checks.networks import small_model

    for more in ({}, {"particles": 3}):
        with pytest.raises(ConfigError, match="prompts: got 'own' for SmallTransformer, which has no text"):
            polytta.adapt(small_model("layer"), "tent", prompts="own", **more)
    with pytest.raises(ConfigError, match="prompts: got 'each'; allowed are"):
        polytta.adapt(small_clip(), prompts="each")


def test_moving_a_network_moves_what_it_knows_of_text() -> None:
    network, x = small_clip(dtype=torch.float32), small_stream(1, 4)[0]
    polytta.adapt(network, CLIPArTT(classes=2, steps=1), lr=1e-3)(x.float())
    polytta.adapt(network, TPT(views=2, share=0.5))(x.float())
    network.double()
    assert network.text.features(["a photo of a cat"]).dtype == torch.float64
    for method in (CLIPArTT(classes=2, steps=1), TPT(views=2, share=0.5)):
        assert bool(polytta.adapt(network, method, lr=1e-3)(x).isfinite().all())


def test_sentences_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_SENTENCES_KEPT", 20)
    encoder = small_clip().text
    wanted = encoder.features([f"word {number}" for number in range(50)])
    assert len(encoder._known) == 20
    assert torch.equal(encoder.features([f"word {number}" for number in range(50)]), wanted)


def test_logits_keep_their_digits_where_the_encoder_has_few() -> None:
    network = zero_shot(tiny_clip(), tokenize, ("cat", "dog", "ship"), ("a photo of a {}",))
    features = F.normalize(torch.randn(64, network.feature_size), dim=-1)
    exact = network.classify(features, network.class_features)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = network.classify(features, network.class_features)
    assert mixed.dtype == torch.float32
    assert torch.equal(mixed, exact)
    assert network.classify(features.bfloat16(), network.class_features).dtype == torch.float32


@pytest.mark.parametrize("images", [1, 3])
def test_prompts_of_few_images_at_once_change_no_answer(images: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network = small_clip()
    x = small_stream(1, 7)[0]
    method = TPT(views=3, share=0.5, steps=2)
    together = polytta.adapt(network, method, particles=2)(x)
    sizes = []
    tuned = TPT.tuned

    def watched(self: TPT, network: Any, seen: Tensor) -> tuple[Tensor, Tensor]:
        sizes.append(seen.shape[0])
        return tuned(self, network, seen)

    monkeypatch.setattr(TPT, "tuned", watched)
    embedded = network.text.embedded(network.text.tokens([f"a photo of a {name}." for name in network.classes]))
    monkeypatch.setattr(tpt, "_VALUES_AT_ONCE", images * embedded.numel())
    torch.testing.assert_close(polytta.adapt(network, method, particles=2)(x), together, atol=1e-5, rtol=1e-5)
    assert max(sizes) == images
    assert sum(sizes) == 14
