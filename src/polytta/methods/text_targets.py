r"""What WATT and CLIPArTT descend: images and the text they are taken for should be alike in the same way.

    ℓ_i = -Σ_j Q_ji log softmax_j(e^s ⟨I_i, T_j⟩),   Q = softmax over rows of (I Iᵀ + T Tᵀ) / (2 · 0.01)

I are unit features of the images of a batch, T those of the text each is taken for. Q is transposed after the softmax
and gradients flow through it, as in the public code of both.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from polytta.errors import ModelError
from polytta.methods.base import Method
from polytta.roles import Pass

TEMPERATURE = 0.01
Target = Literal["both", "images", "text", "identity"]


def require_text(network: nn.Module, method: Method) -> None:
    """Refuses a network that knows no text for a method that needs it."""
    if method.needs_text and not (hasattr(network, "text_features") and hasattr(network, "text")):
        raise ModelError(
            f"model: got {type(network).__name__} for method {method.name!r}, which compares images with text; allowed "
            "is what polytta.clip.zero_shot makes."
        )


def features_of(one: Pass) -> Tensor:
    """(K, B, D) unit features of a pass."""
    assert one.features is not None, "a network that knows text tells its features"
    return one.features


def alike(images: Tensor, text: Tensor, scale: Tensor, target: Target = "both") -> Tensor:
    """(K, B) losses of unit features (K, B, D) of images and of text."""
    told = (scale * images @ text.mT).log_softmax(dim=-1)
    if target == "identity":
        wanted = torch.eye(images.shape[1], dtype=images.dtype, device=images.device)
    else:
        sums = [images @ images.mT] * (target != "text") + [text @ text.mT] * (target != "images")
        wanted = (torch.stack(sums).sum(dim=0) / 2 / TEMPERATURE).softmax(dim=-1)
    return -(wanted.mT * told).sum(dim=-1)
