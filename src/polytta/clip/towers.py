"""Finds the two encoders of a CLIP-like model: of open_clip, of transformers, or any object that has both."""

from dataclasses import dataclass
from math import log
from typing import Any

import torch
from torch import Tensor, nn

from polytta.clip.calls import called, called_by_image, without_images, without_text
from polytta.clip.text import TextEncoder, Tokenizer, pooled
from polytta.errors import ModelError
from polytta.network.copies import share_structure

USUAL_SCALE = log(100)
"""Where a model has none of its own: what CLIP ends its training with."""


@dataclass(frozen=True)
class Towers:
    """A model taken apart.

    Attributes:
        image: images (B, ...) to features (B, D), with no part of the text encoder in it.
        text: the text encoder.
        logit_scale: logarithm of the factor on cosines.
        logit_bias: added to logits (SigLIP), or None.
    """

    image: nn.Module
    text: TextEncoder
    logit_scale: Tensor
    logit_bias: Tensor | None


class ImageEncoder(nn.Module):
    """Calls an image encoder by a name, on a model that has nothing else left."""

    def __init__(self, model: nn.Module, call: str) -> None:
        super().__init__()
        self.model, self.call = model, call

    def forward(self, x: Tensor) -> Tensor:
        """(B, D) features."""
        try:
            return pooled(getattr(self.model, self.call)(x))
        except (AttributeError, TypeError) as error:
            # What was taken out is None; where no image was found to try, this is the first time that it is missed.
            if "NoneType" not in str(error):
                raise
            raise ModelError(
                f"model: got {type(self.model).__name__}, whose image encoder needs a part of its text encoder ({error}"
                "); allowed is a model with the size of its images as image_size, so that this is seen before."
            ) from error


def take_apart(model: Any, tokenizer: Tokenizer, sentence: str) -> Towers:
    """The encoders of a model, found by letting it read a sentence; ModelError in a sentence when one is missing."""
    names = (("encode_image", "encode_text"), ("get_image_features", "get_text_features"))
    found = [pair for pair in names if all(callable(getattr(model, name, None)) for name in pair)]
    if not isinstance(model, nn.Module) or not found:
        missing = "encode_text" if callable(getattr(model, "encode_image", None)) else "encode_image"
        raise ModelError(
            f"model: got {type(model).__name__} without {missing}; allowed are models of open_clip or transformers, or "
            "any torch module with encode_image and encode_text."
        )
    image, text = found[0]
    reader, looker = share_structure(model), share_structure(model)
    encoder = TextEncoder(reader, getattr(reader, text), tokenizer)
    reads = called(reader, lambda: encoder.encoded(*encoder.read([sentence])))
    looks = called_by_image(reader, getattr(reader, image))
    twins = dict(zip(reader.modules(), looker.modules(), strict=True))
    without_text(looker, {twins[part] for part in reads}, None if looks is None else {twins[part] for part in looks})
    without_images(reader, reads, looks)
    scale = _number(model, "logit_scale")
    usual = torch.tensor(USUAL_SCALE) if scale is None else scale
    return Towers(ImageEncoder(looker, image), encoder, usual, _number(model, "logit_bias"))


def _number(model: nn.Module, name: str) -> Tensor | None:
    """A model's number of that name, whatever holds it."""
    found = getattr(model, name, None)
    if found is None:
        return None
    number = found.detach().clone() if isinstance(found, Tensor) else None
    if isinstance(found, int | float) and not isinstance(found, bool):
        number = torch.tensor(float(found))
    if number is None or number.numel() != 1 or not bool(number.isfinite().all()):
        got = repr(found) if number is None else number.item() if number.numel() == 1 else f"{tuple(number.shape)}"
        raise ModelError(f"model: got {got} as {name}; allowed is one finite number.")
    return number.squeeze()
