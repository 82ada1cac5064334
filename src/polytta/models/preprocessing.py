"""How a source model wants its images: size, resampling and normalisation, as one value for the records.

An image that already has the model's size is only normalised (ImageNet-C is stored cropped). Any other is
resized so that its shorter side, or with ``fit="squash"`` each side, is ``resize``, and cut in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polytta.errors import InputError

Triple: TypeAlias = tuple[float, float, float]
Protocol: TypeAlias = Literal["correct", "sar2023"]

IMAGENET_MEAN: Triple = (0.485, 0.456, 0.406)
IMAGENET_STD: Triple = (0.229, 0.224, 0.225)
# A row of single pixels would be enormous by the time its shorter side is as long as a model wants it.
MAX_RATIO = 100


@dataclass(frozen=True)
class Preprocessing:
    """Turns uint8 images into the model's input.

    Attributes:
        mean: Subtracted from each channel, on the scale 0 to 1.
        std: Each channel is divided by it.
        size: Height and width of the input.
        resize: Length of the shorter side before the centre crop, at least ``size``.
        interpolation: ``bilinear`` or ``bicubic``.
        fit: ``crop`` keeps the aspect ratio, ``squash`` does not.
        protocol: Whether mean and std are the model's own or those of a named publication.
    """

    mean: Triple
    std: Triple
    size: int
    resize: int
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    fit: Literal["crop", "squash"] = "crop"
    protocol: Protocol = "correct"

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> Tensor:
        """Stack images (height x width x 3, uint8) into a normalised batch (N, 3, size, size)."""
        return self.normalised(self.fitted(images))

    def fitted(self, images: Sequence[NDArray[np.uint8]]) -> Tensor:
        """(N, size, size, 3) uint8."""
        return torch.from_numpy(np.stack([self._fitted(image) for image in images]))

    def normalised(self, batch: Tensor) -> Tensor:
        """(N, 3, size, size) float32 of what :meth:`fitted` gives, on its device."""
        white = torch.tensor(255.0, device=batch.device)  # as a tensor, since a GPU multiplies by a number's reciprocal
        mean, std = (torch.tensor(values, device=batch.device).view(1, 3, 1, 1) for values in (self.mean, self.std))
        return ((batch.permute(0, 3, 1, 2).float() / white - mean) / std).contiguous()

    def _fitted(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
            raise InputError(f"images: got {image.dtype} {image.shape}; allowed are uint8 (height, width, 3).")
        height, width, _ = image.shape
        if height == width == self.size:
            return image
        if not min(height, width) or max(height, width) > MAX_RATIO * min(height, width):
            raise InputError(
                f"images: got {width} x {height} pixels; allowed is a longer side of {MAX_RATIO} times the shorter."
            )
        wide = high = self.resize
        if self.fit == "crop":
            wide, high = (int(side * self.resize / min(height, width)) for side in (width, height))
        resized = self._resized(image, wide, high)
        top, left = round((high - self.size) / 2), round((wide - self.size) / 2)
        return resized[top : top + self.size, left : left + self.size]

    def _resized(self, image: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
        # Imported here because the script that trains the bundled models needs no image library.
        from PIL import Image

        resample = Image.Resampling[self.interpolation.upper()]
        return np.asarray(Image.fromarray(image).resize((width, height), resample))


def under_protocol(own: Preprocessing, protocol: str, imagenet_model: bool) -> Preprocessing:
    """Return the preprocessing under a named normalisation protocol.

    ``correct`` is the model's own. ``sar2023`` is what the published code of SAR (arXiv 2302.12400) and
    those built on it did: ImageNet's constants for every ImageNet classifier, wrong for timm's ViT, which
    was trained with 0.5.
    """
    if protocol == "correct":
        return own
    if protocol != "sar2023":
        raise InputError(f"normalisation: got {protocol!r}; allowed are correct and sar2023.")
    if not imagenet_model:
        raise InputError("normalisation: got sar2023; allowed for ImageNet classifiers of timm and torchvision alone.")
    return replace(own, mean=IMAGENET_MEAN, std=IMAGENET_STD, protocol="sar2023")


def triple(values: Any) -> Triple:
    """Check and freeze three numbers from a zoo's configuration."""
    red, green, blue = (float(value) for value in values)
    return red, green, blue
