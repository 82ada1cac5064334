r"""Text as numbers of byte pairs: whatever is written can be read, and what is common is short.

Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units", ACL 2016, over bytes. A word
starts as its bytes, the last one marked as an end; then the pair that was learnt first is joined, again and again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

import torch
from torch import Tensor

Pair = tuple[int, int]
BYTES = 256
"""Numbers of bytes inside a word; as many more are of those that end one."""
_WORDS = re.compile(r"[a-z]+|[0-9]|[^\sa-z0-9]+")


class BytePairs:
    """A tokenizer: sentences to (N, L) numbers, zeros after the end.

    Args:
        pairs: what is joined, in the order learnt.
        length: L.
    """

    def __init__(self, pairs: Sequence[Pair], length: int) -> None:
        self.pairs, self.length = tuple(tuple(pair) for pair in pairs), length
        self._rank = {pair: number for number, pair in enumerate(self.pairs)}
        # Zero is nothing.
        self.begin, self.end = 1 + 2 * BYTES + len(self.pairs), 2 + 2 * BYTES + len(self.pairs)
        self.size = self.end + 1
        self._word = lru_cache(4096)(self._word_numbers)

    def __call__(self, sentences: Sequence[str]) -> Tensor:
        """(N, L); longer sentences lose their end, which whoever asks can see by ``encode``."""
        rows = []
        for sentence in sentences:
            row = [self.begin, *self.encode(sentence)[: self.length - 2], self.end]
            rows.append(row + [0] * (self.length - len(row)))
        return torch.tensor(rows)

    def encode(self, sentence: str) -> list[int]:
        """Numbers of a sentence, without marks of beginning and end."""
        words = _WORDS.findall(sentence.lower().replace("_", " "))
        return [1 + number for word in words for number in self._word(word)]

    def _word_numbers(self, word: str) -> tuple[int, ...]:
        numbers = first_numbers(word)
        while len(numbers) > 1:
            best = min(pairwise(numbers), key=lambda pair: self._rank.get(pair, len(self._rank)))
            if best not in self._rank:
                break
            numbers = joined(numbers, best, 2 * BYTES + self._rank[best])
        return numbers


def first_numbers(word: str) -> tuple[int, ...]:
    """The bytes of a word, the last one marked."""
    *inside, last = word.encode("utf-8")
    return (*inside, BYTES + last)


def joined(numbers: Sequence[int], pair: Pair, number: int) -> tuple[int, ...]:
    """A number in place of every pair, from the left."""
    found: list[int] = []
    place = 0
    while place < len(numbers):
        both = tuple(numbers[place : place + 2]) == pair
        found.append(number if both else numbers[place])
        place += 2 if both else 1
    return tuple(found)


def learn_pairs(sentences: Iterable[str], count: int) -> list[Pair]:
    """The most frequent pairs, one after the other; fewer where every word is whole before."""
    words = Counter(word for one in sentences for word in _WORDS.findall(one.lower().replace("_", " ")))
    spelled = {word: first_numbers(word) for word in words}
    pairs: list[Pair] = []
    while len(pairs) < count:
        seen: Counter[Pair] = Counter()
        for word, numbers in spelled.items():
            for pair in pairwise(numbers):
                seen[pair] += words[word]
        if not seen:
            break
        # Among equals the smallest, so that the same text always gives the same pairs.
        best = min(seen, key=lambda pair: (-seen[pair], pair))
        spelled = {word: joined(numbers, best, 2 * BYTES + len(pairs)) for word, numbers in spelled.items()}
        pairs.append(best)
    return pairs
