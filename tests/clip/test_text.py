"""The text encoder: what it makes of the output of tokenizers."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from tests.clip.tiny_clip import LENGTH, TinyClip, tiny_clip, tokenize
from tests.extras import needs
from torch import Tensor, nn
from torch.nn import functional as F

import polytta
from polytta.clip import ZeroShot, zero_shot
from polytta.clip.text import pooled
from polytta.errors import InputError, ModelError
from polytta.methods import TPT, CLIPArTT
from polytta.methods.prompts import Prompts
from polytta.models._torchvision_cpu import import_zoo

CLASSES = ("cat", "dog", "sport car")


class Cuts:
    """As the tokenizers of open_clip: cuts without a word, and counts tokens without the marks of begin and end."""

    def __call__(self, sentences: Sequence[str]) -> Tensor:
        return tokenize([" ".join(one.split()[: LENGTH - 2]) for one in sentences])

    def encode(self, sentence: str) -> list[str]:
        return sentence.split()


def test_text_that_is_cut_is_named_beside_text_of_more_letters() -> None:
    letters, words = "delivery" + " sailing" * 6, "a " * 12 + "cat"
    assert len(words) < len(letters)
    with pytest.raises(InputError, match=r"got 'a photo of a a a .*', which takes 19 tokens; allowed are 16"):
        zero_shot(tiny_clip(), Cuts(), [letters, "dog", words], "photo")
    zero_shot(tiny_clip(), Cuts(), [letters, "dog"], "photo")


def ragged(sentences: Sequence[str]) -> list[list[int]]:
    """As the tokenizers of transformers where nobody asks for padding."""
    return [[one for one in row if one] for row in tokenize(sentences).tolist()]


@pytest.mark.parametrize(
    ("tokenizer", "said"),
    [
        (ragged, r"got rows of 7 to 8 numbers for 16 sentences; allowed are .* padding=\"max_length\"\.$"),
        (lambda texts: {"input_ids": ragged(texts)}, "got rows of 7 to 8 numbers"),
        (lambda texts: list(tokenize(texts)), "got a list of Tensor for 1 sentences; allowed are"),
        (lambda texts: list(texts), "got list for 1 sentences; allowed are"),
        (lambda texts: [["a"] for _ in texts], "got a list of list for 1 sentences"),
        (lambda texts: tokenize(texts)[:, :0], r"got \(1, 0\) for 1 sentences"),
        (lambda texts: [[] for _ in texts], r"got \(1, 0\) of torch.float32 for 1 sentences"),
        (lambda texts: tokenize(texts).to(torch.complex64), r"got \(1, 16\) of torch.complex64 for 1 sentences"),
        (lambda texts: tokenize(texts) > 0, r"got \(1, 16\) token numbers up to 1, which the text encoder cannot"),
    ],
)
def test_what_no_text_encoder_takes_gets_one_sentence(tokenizer: Callable[..., Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        zero_shot(AnyLength(), tokenizer, ["cat", "sport car"], "photo")


class AnyLength(TinyClip):
    """As the text encoders of transformers, which take any length up to theirs."""

    def encode_text(self, tokens: Tensor) -> Tensor:
        padded = torch.nn.functional.pad(tokens, (0, LENGTH - tokens.shape[1]))
        return super().encode_text(padded)


def test_whatever_an_encoder_says_is_told() -> None:
    class Picky(TinyClip):
        def encode_text(self, tokens: Tensor) -> Tensor:
            raise KeyError("pad")

    with pytest.raises(InputError, match=r"which the text encoder cannot take; allowed is .* it said: KeyError: 'pad'"):
        zero_shot(Picky(), tokenize, ["cat", "dog"], "photo")


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_text_features_are_finite(value: float) -> None:
    class Broken(TinyClip):
        def encode_text(self, tokens: Tensor) -> Tensor:
            return torch.full((len(tokens), 24), value)

    with pytest.raises(ModelError, match="model: got text features with NaN or infinity; allowed are finite ones"):
        zero_shot(Broken(), tokenize, ["cat", "dog"], "photo")


class Padded(nn.Module):
    """As the models of transformers; whether its text encoder reads both ways is for each to say."""

    causal = False

    def __init__(self) -> None:
        super().__init__()
        self.clip, self.masks = tiny_clip(), list[bool]()
        for block in self.clip.text_blocks:
            block.causal = self.causal

    def get_image_features(self, x: Tensor) -> Tensor:
        return self.clip.encode_image(x)

    def get_text_features(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        self.masks.append(attention_mask is not None)
        clip = self.clip
        states = clip.token_embedding(input_ids) + clip.positional_embedding
        if attention_mask is not None:
            states = states * attention_mask.unsqueeze(-1)
        states = clip.ln_final(clip.text_blocks(states))
        return states[torch.arange(len(input_ids)), input_ids.argmax(dim=-1)] @ clip.text_projection


class Causal(Padded):
    causal = True


def with_mask(sentences: Sequence[str]) -> dict[str, Tensor]:
    tokens = tokenize(sentences)
    return {"input_ids": tokens, "attention_mask": (tokens > 0).long()}


def read_by(kind: type[Padded], tokenizer: Callable[..., Any] = with_mask) -> tuple[Padded, ZeroShot]:
    model = kind().eval()
    return model, zero_shot(model, tokenizer, CLASSES, "photo")


def told(model: Padded, sentences: Sequence[str]) -> Tensor:
    with torch.no_grad():
        return F.normalize(model.get_text_features(**with_mask(sentences)), dim=-1)


@pytest.mark.parametrize("kind", [Padded, Causal])
def test_what_a_tokenizer_masks_is_masked(kind: type[Padded]) -> None:
    model, network = read_by(kind)
    wanted = told(model, [f"a photo of a {name}" for name in CLASSES])
    assert torch.allclose(network.class_features, wanted, atol=1e-6)
    prompts = Prompts.of(network, "a photo of a")
    wanted = told(model, [f"a photo of a {name}." for name in CLASSES])
    assert torch.allclose(prompts.features(prompts.first.unsqueeze(0))[0], wanted, atol=1e-6)
    sentence = "a photo of a cat or sport car"
    assert torch.allclose(network.text.features([sentence])[0], told(model, [sentence])[0], atol=1e-6)


def test_a_causal_encoder_is_given_no_mask() -> None:
    _, network = read_by(Causal)
    assert network.text.module.masks
    assert not any(network.text.module.masks)
    _, bare = read_by(Causal, tokenize)
    assert torch.equal(network.class_features, bare.class_features)
    _, unlike = read_by(Padded, tokenize)
    assert not torch.allclose(read_by(Padded)[1].class_features, unlike.class_features, atol=1e-3)


def test_a_mask_of_another_shape_gets_one_sentence() -> None:
    with pytest.raises(InputError, match=r"got an attention_mask of \(1, 4\) for tokens of \(1, 16\); allowed"):
        read_by(Padded, lambda texts: {**with_mask(texts), "attention_mask": torch.ones(len(texts), 4).long()})


@needs("transformers")
@pytest.mark.filterwarnings("ignore")
def test_masks_reach_a_bidirectional_model_of_transformers() -> None:
    library = import_zoo("transformers")
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = library.ChineseCLIPConfig(
        text_config={**sizes, "vocab_size": 100},
        vision_config={**sizes, "image_size": 32, "patch_size": 8},
        projection_dim=8,
    )
    torch.manual_seed(0)
    model = library.ChineseCLIPModel(config).eval()
    for parameter in model.parameters():
        parameter.data.mul_(15 if parameter.dim() > 1 else 1)
    network = zero_shot(model, with_mask, CLASSES, "photo")
    with torch.no_grad():
        wanted = pooled(model.get_text_features(**with_mask([f"a photo of a {name}" for name in CLASSES])))
    assert torch.allclose(network.class_features, F.normalize(wanted, dim=-1), atol=1e-5)
    for method in (TPT(views=2, share=0.5), CLIPArTT(classes=2, steps=1)):
        adapted = polytta.adapt(network, method, particles=1, lr=1e-3, exclude=None)
        assert bool(adapted(torch.randn(2, 3, 32, 32)).isfinite().all())
