"""The text encoder: what it makes of the output of tokenizers."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from tests.clip.tiny_clip import LENGTH, TinyClip, tiny_clip, tokenize
from torch import Tensor

from polytta.clip import zero_shot
from polytta.errors import InputError


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
