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
        rejected: how many images cannot be learnt from.
    """

    x: Tensor
    usable: Tensor | None = None
    rejected: int = 0

    @property
    def good(self) -> Tensor:
        """The images that can be learnt from."""
        return self.x if self.usable is None else self.x[self.usable]


def admit(x: object, dtype: torch.dtype, device: torch.device, populations: int | None = None) -> Tensor:
    """The batch in the model's type, after checking all that can be checked without reading its values.

    Args:
        x: what the user passed.
        dtype: the model's floating-point type, to which the batch is cast.
        device: where the model is.
        populations: G where ``x`` is a batch (G, B, ...) for each of G populations; they come back one after the other.
    """
    if populations is not None:
        if not isinstance(x, Tensor) or x.is_nested or x.dim() < 3 or x.shape[0] != populations:
            got = tuple(x.shape) if isinstance(x, Tensor) and not x.is_nested else type(x).__name__
            raise InputError(f"x: got {got}; allowed for {populations} populations is ({populations}, B, ...).")
        x = x.flatten(0, 1)
    if not isinstance(x, Tensor):
        raise InputError(f"x: got {type(x).__name__}; allowed is a floating-point tensor (B, ...).")
    if x.layout is not torch.strided or x.is_nested:
        raise InputError(f"x: got a {'nested' if x.is_nested else x.layout} tensor; allowed is a plain, dense one.")
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
    return x.to(dtype).contiguous() if device.type == "cpu" else x.to(dtype)


def all_in_range(x: Tensor) -> Tensor:
    """() whether all values are finite and not absurdly large."""
    return torch.linalg.vector_norm(x, ord=torch.inf) <= _largest(x.dtype)


def _largest(dtype: torch.dtype) -> float:
    return min(LARGEST_VALUE, torch.finfo(dtype).max)


def screen(x: Tensor, grouped: bool = False) -> Screened:
    """Finds the images of an admitted batch with values that are non-finite or absurdly large.

    Where batches of populations are grouped they are refused: without them, the batches would differ in size.
    """
    if bool(all_in_range(x)):
        return Screened(x)
    fine = x.abs() <= _largest(x.dtype)
    usable = fine.flatten(1).all(dim=1)
    batch = Screened(torch.where(fine, x, torch.zeros_like(x)), usable, int((~usable).sum()))
    if grouped:
        raise InputError(
            f"x: got {batch.rejected} images with non-finite or absurd values; allowed with populations are none."
        )
    return batch
