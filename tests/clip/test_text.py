"""The text encoder: what it makes of the output of tokenizers."""

from collections.abc import Sequence

import pytest
from tests.clip.tiny_clip import LENGTH, tiny_clip, tokenize
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
