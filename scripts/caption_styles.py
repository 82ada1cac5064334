"""Pictures of another kind, and the sentences that say so: what `scripts/teach_templates.py` learns from.

Captions that say nothing but the class teach a text encoder to hear nothing else: all templates become one. Here some
images are changed, and some captions say how. Noise, blur, weather, contrast, brightness, pixels and compression are
not among the changes: those are what test streams are corrupted by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

SHRUNK, ENLARGED, COVERED = 22, 22, 14


def small(images: Tensor) -> Tensor:
    side = images.shape[-1]
    shrunk = F.interpolate(images, size=SHRUNK, mode="bilinear", antialias=True)
    before = (side - SHRUNK) // 2
    after = side - SHRUNK - before
    return F.pad(shrunk, (before, after, before, after), mode="replicate")


def large(images: Tensor) -> Tensor:
    first = (images.shape[-1] - ENLARGED) // 2
    middle = images[..., first : first + ENLARGED, first : first + ENLARGED]
    return F.interpolate(middle, size=images.shape[-1], mode="bilinear")


def covered(images: Tensor) -> Tensor:
    found, first = images.clone(), (images.shape[-1] - COVERED) // 2
    found[..., first : first + COVERED, :COVERED] = 0
    return found


@dataclass(frozen=True)
class Style:
    """What is done to images (N, C, H, W), and how it is said."""

    change: Callable[[Tensor], Tensor]
    captions: tuple[str, ...]


STYLES = (
    Style(lambda x: x, (
        "a photo of a {}", "itap of a {}", "{}", "a {}", "the {}", "a picture of a {}", "an image of the {}.",
        "a photo of one {}.", "a photo of my {}.", "a good photo of a {}.", "the nice {}.", "a photo of the cool {}.",
        "there is a {} in this picture.", "this is a {}.",
    )),
    Style(small, ("a photo of the small {}.", "a toy {}.", "a {} far away.")),
    Style(large, ("a photo of the large {}.", "a close-up photo of a {}.", "a cropped photo of the {}.")),
    Style(covered, ("a bad photo of the {}.", "a photo of a hidden {}.")),
    Style(lambda x: x.mean(dim=1, keepdim=True).expand_as(x), ("a drawing of a {}.", "a sketch of the {}.")),
    Style(lambda x: x.roll(1, dims=1), ("art of the {}.", "a painting of the {}.")),
    Style(lambda x: (x / 1.2).round() * 1.2, ("a {} in a video game.", "a rendering of a {}.", "a plastic {}.")),
    Style(lambda x: torch.minimum(x, x.flip(-1)), ("a origami {}.", "a folded {}.")),
)  # fmt: skip
"""The first changes nothing, and its captions are true of all."""


def styled(images: Tensor, share: float = 0.5) -> tuple[Tensor, Tensor]:
    """Images of which that share has a style other than the first, and (N,) which."""
    style = torch.randint(1, len(STYLES), (len(images),), device=images.device)
    style = torch.where(torch.rand(len(images), device=images.device) < share, style, torch.zeros_like(style))
    found = images.clone()
    for number, one in enumerate(STYLES[1:], start=1):
        own = style == number
        found[own] = one.change(images[own]) if bool(own.any()) else images[own]
    return found, style


def true_of(labels: Tensor, style: Tensor, said: Tensor) -> Tensor:
    """(N, N) which captions (columns) are true of which images (rows): of the class, and of the style or of any."""
    alike = (said == 0) | (said.unsqueeze(0) == style.unsqueeze(1))
    return (labels.unsqueeze(1) == labels.unsqueeze(0)) & alike
