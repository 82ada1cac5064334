"""The gate every batch passes before anything else sees it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from polytta.errors import InputError

# Far beyond any normalized image, and small enough that sums of squares stay finite in float32.
LARGEST_VALUE = 1e6


@dataclass(frozen=True)
class Screened:
    """A batch split into images that can be learnt from and images that cannot.

    Attributes:
        x: (B, ...) with every broken value replaced by 0.
        usable: (B,) booleans; None when all are.
    """

    x: Tensor
    usable: Tensor | None

    @property
    def rejected(self) -> int:
        """How many images cannot be learnt from."""
        return 0 if self.usable is None else int((~self.usable).sum())


def require_images(who: str, x: Tensor) -> None:
    """Raises InputError unless ``x`` is a batch of images with height and width."""
    if x.dim() != 4:
        raise InputError(f"x: {who} got shape {tuple(x.shape)}; allowed are images (B, C, H, W).")


def screen(x: object, dtype: torch.dtype, device: torch.device) -> Screened:
    """Checks a batch and finds the images with non-finite or absurdly large values.

    Args:
        x: what the user passed.
        dtype: the model's floating-point type, to which the batch is cast.
        device: where the model is.
    """
    if not isinstance(x, Tensor):
        raise InputError(f"x: got {type(x).__name__}; allowed is a floating-point tensor (B, ...).")
    if not x.is_floating_point():
        raise InputError(f"x: got {x.dtype}; allowed are floating-point images, normalized as the model expects.")
    if x.dim() < 2:
        raise InputError(f"x: got shape {tuple(x.shape)}; allowed is a batch (B, ...) of images.")
    if x.numel() == 0:
        raise InputError(f"x: got an empty batch of shape {tuple(x.shape)}; allowed is at least one image.")
    if x.device != device:
        raise InputError(f"x: got a tensor on {x.device}; allowed is the model's device, {device}.")
    x = x.detach()
    x = x.clone() if x.is_inference() else x
    # torch's GroupNorm backward crashes the process on channels-last CPU tensors with fewer images than threads.
    x = x.to(dtype).contiguous() if device.type == "cpu" else x.to(dtype)
    in_range = x.abs() <= min(LARGEST_VALUE, torch.finfo(dtype).max)
    if bool(in_range.all()):
        return Screened(x, None)
    return Screened(torch.where(in_range, x, torch.zeros_like(x)), in_range.flatten(1).all(dim=1))
