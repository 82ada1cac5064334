"""Prompts whose first words are vectors: the text side of TPT."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Prompts:
    """A prompt per class that begins alike.

    Attributes:
        tokens: (C, L) of "CONTEXT NAME." for every class.
        mask: (C, L) of them, where the text encoder needs one.
        embedded: (C, L, W) what the text encoder makes of them first.
        place: of the first word of the context.
        words: how many the context has.
        encoder: the text encoder.
    """

    tokens: Tensor
    mask: Tensor | None
    embedded: Tensor
    place: int
    words: int
    encoder: Any

    @classmethod
    def of(cls, network: Any, context: str) -> "Prompts":
        """For the classes of a network."""
        encoder, names = network.text, network.classes
        tokens, mask = encoder.read([f"{context} {name}." for name in names])
        # Names may all begin with the same token ("black_cat", "black_dog"), but not with a full stop as well.
        place = _shared(encoder.tokens([".", *context.split(), *(f"{name}." for name in names)]))
        words = _shared(encoder.tokens([context, f"{context} {names[0]}."])) - place
        return cls(tokens, mask, encoder.embedded(tokens), place, words, encoder)

    @property
    def first(self) -> Tensor:
        """(n, W) the vectors of the context as it was given."""
        return self.embedded[0, self.place : self.place + self.words]

    def features(self, vectors: Tensor) -> Tensor:
        """(N, C, D) unit text features with the context's vectors (N, n, W) in place of its words."""
        count, classes, asked_on = vectors.shape[0], self.tokens.shape[0], vectors.device
        before, after = self.embedded[:, : self.place], self.embedded[:, self.place + self.words :]
        parts = [
            before.expand(count, *before.shape),
            # Copies of a network share the encoder, and may be on another device.
            vectors.to(before).unsqueeze(1).expand(-1, classes, -1, -1),
            after.expand(count, *after.shape),
        ]
        whole = torch.cat(parts, dim=2).flatten(0, 1)
        mask = None if self.mask is None else self.mask.repeat(count, 1)
        told: Tensor = self.encoder.of_embedded(whole, self.tokens.repeat(count, 1), mask)
        return told.unflatten(0, (count, classes)).to(asked_on)


def _shared(tokens: Tensor) -> int:
    """How many tokens all rows begin with."""
    alike = (tokens == tokens[:1]).all(dim=0).tolist()
    return alike.index(False) if False in alike else len(alike)
