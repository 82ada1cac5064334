"""Ways to destroy the shape of an object while keeping its texture, which DeYO's PLPD compares predictions across.

A shuffle is any callable ``(x, noise) -> x'`` from (K, B, C, H, W), the images of K particles, to another tensor of the
same shape; ``noise.uniform(*shape)`` gives it (K, *shape) random numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from polytta.guard.images import require_images
from polytta.roles.noise import Noise

Shuffle = Callable[[Tensor, Noise], Tensor]


@dataclass(frozen=True)
class PatchShuffle:
    """An independent random permutation of the tiles of each image (DeYO's default).

    Attributes:
        grid: tiles along each side. Height and width are brought to a multiple of it by resizing, and back.
        antialias: whether that resizing averages where it shrinks, as newer versions of torchvision do.
    """

    grid: int = 4
    antialias: bool = False

    def __call__(self, x: Tensor, noise: Noise) -> Tensor:
        """Cuts images (K, B, C, H, W) into tiles, row by row, and sorts these by random numbers."""
        _require_images(x)
        order = noise.uniform(x.shape[1], self.grid**2).argsort(dim=2, stable=True).flatten(0, 1)
        images, side = x.flatten(0, 1), self.grid
        batch, channels, height, width = images.shape
        fitted = [max(height // side, 1) * side, max(width // side, 1) * side]
        resized = images if fitted == [height, width] else self._resized(images, fitted)
        h, w = fitted[0] // side, fitted[1] // side
        # An image is a list of rows of tiles, of w pixels each; every place on it gets one of them, in a single pass.
        rows = torch.arange(resized.numel() // w, device=x.device).reshape(batch, channels, side, h, side)
        away = order + order // side * (side * (h - 1))  # from the first tile to this one, in rows
        picked = rows[:, :, :1, :, :1] + away.reshape(batch, 1, side, 1, side)
        moved = resized.reshape(-1, w).gather(0, picked.reshape(-1, 1).expand(-1, w)).reshape(resized.shape)
        return (moved if fitted == [height, width] else self._resized(moved, [height, width])).reshape(x.shape)

    def _resized(self, images: Tensor, size: list[int]) -> Tensor:
        return F.interpolate(images, size, mode="bilinear", align_corners=False, antialias=self.antialias)


def permute_tiles(x: Tensor, order: Tensor) -> Tensor:
    """Images (B, C, H, W) cut into n·n tiles, with tile ``order[b, i]`` at place i, in a known order (B, n·n)."""
    return PatchShuffle(round(order.shape[1] ** 0.5))(x.unsqueeze(0), _KnownOrder(order)).squeeze(0)


class _KnownOrder(Noise):
    """Numbers that sort into a given order."""

    def __init__(self, order: Tensor) -> None:
        self._ranks = order.argsort(dim=1).unsqueeze(0)

    def uniform(self, *shape: int) -> Tensor:
        return self._ranks / self._ranks.shape[-1]


@dataclass(frozen=True)
class PixelShuffle:
    """One random permutation of all pixels per particle, shared by the batch."""

    def __call__(self, x: Tensor, noise: Noise) -> Tensor:
        """Shuffles the pixels."""
        _require_images(x)
        order = noise.uniform(x.shape[-2] * x.shape[-1]).argsort(dim=1, stable=True)
        return x.flatten(3).gather(3, order[:, None, None, :].expand_as(x.flatten(3))).reshape(x.shape)


@dataclass(frozen=True)
class CentreOcclusion:
    """The central half of each image replaced by its mean colour."""

    def __call__(self, x: Tensor, noise: Noise) -> Tensor:
        """Covers the centre; nothing is random."""
        _require_images(x)
        height, width = x.shape[-2:]
        covered = x.clone()
        centre = (slice(height // 4, height // 4 + height // 2), slice(width // 4, width // 4 + width // 2))
        covered[..., centre[0], centre[1]] = x.mean(dim=(-2, -1), keepdim=True)
        return covered


SHUFFLES: dict[str, type[PatchShuffle] | type[PixelShuffle] | type[CentreOcclusion]] = {
    "patch": PatchShuffle,
    "pixel": PixelShuffle,
    "occlusion": CentreOcclusion,
}


def _require_images(x: Tensor) -> None:
    if x.dim() != 5:
        require_images("DeYO's shuffle", x[0])
