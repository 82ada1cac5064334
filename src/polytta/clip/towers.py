"""Finds the two encoders of a CLIP-like model: of open_clip, of transformers, or any object that has both."""

from dataclasses import dataclass
from math import log
from typing import Any

import torch
from torch import Tensor, nn

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
        return pooled(getattr(self.model, self.call)(x))


def take_apart(model: Any, tokenizer: Tokenizer) -> Towers:
    """The encoders of a model; ModelError in a sentence when one is missing."""
    names = (("encode_image", "encode_text"), ("get_image_features", "get_text_features"))
    found = [pair for pair in names if all(callable(getattr(model, name, None)) for name in pair)]
    if not isinstance(model, nn.Module) or not found:
        missing = "encode_text" if callable(getattr(model, "encode_image", None)) else "encode_image"
        raise ModelError(
            f"model: got {type(model).__name__} without {missing}; allowed are models of open_clip or transformers, or "
            "any torch module with encode_image and encode_text."
        )
    image, text = found[0]
    scale, bias = getattr(model, "logit_scale", None), getattr(model, "logit_bias", None)
    device = next(model.parameters()).device
    whole = share_structure(model)
    encoder = TextEncoder(_without(whole, image), getattr(whole, text), tokenizer)
    return Towers(
        ImageEncoder(_without(share_structure(model), text), image),
        encoder,
        torch.tensor(USUAL_SCALE, device=device) if scale is None else scale.detach().clone().squeeze(),
        None if bias is None else bias.detach().clone().squeeze(),
    )


_OF_IMAGES = ("visual", "vision_model", "visual_projection", "vision", "image_encoder")
_OF_TEXT = (
    *("transformer", "token_embedding", "positional_embedding", "ln_final", "text_projection", "text"),
    *("text_model", "text_encoder", "text_blocks", "attn_mask"),
)


def _without(model: nn.Module, call: str) -> nn.Module:
    """A shared copy that lost what only the encoder of that name needs, as far as libraries call it alike."""
    for name in _OF_IMAGES if "image" in call else _OF_TEXT:
        if name in model._modules:
            model._modules[name] = None
        elif name in model._parameters:
            model._parameters[name] = None
    return model
