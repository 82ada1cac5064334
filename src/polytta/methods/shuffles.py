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


def permute_tiles(x: Tensor, order: Tensor) -> Tensor:
    """Cuts each image into tiles, row by row, and puts tile ``order[b, k]`` at place k.

    Args:
        x: (B, C, H, W); H and W are brought to a multiple of the grid by resizing, and back.
        order: (B, n·n) permutations.
    """
    require_images("DeYO's shuffle", x)
    side = round(order.shape[1] ** 0.5)
    batch, channels, height, width = x.shape
    fitted = (max(height // side, 1) * side, max(width // side, 1) * side)
    resized = x if fitted == (height, width) else F.interpolate(x, fitted, mode="bilinear", align_corners=False)
    h, w = fitted[0] // side, fitted[1] // side
    # An image is a list of rows of tiles, of w pixels each; every place on it gets one of them, in a single pass.
    rows = torch.arange(resized.numel() // w, device=x.device).reshape(batch, channels, side, h, side)
    away = order + order // side * (side * (h - 1))  # from the first tile to this one, in rows
    picked = rows[:, :, :1, :, :1] + away.reshape(batch, 1, side, 1, side)
    moved = resized.reshape(-1, w).gather(0, picked.reshape(-1, 1).expand(-1, w)).reshape(resized.shape)
    if moved.shape == x.shape:
        return moved
    return F.interpolate(moved, (height, width), mode="bilinear", align_corners=False)


@dataclass(frozen=True)
class PatchShuffle:
    """An independent random permutation of the tiles of each image (DeYO's default)."""

    grid: int = 4

    def __call__(self, x: Tensor, noise: Noise) -> Tensor:
        """Shuffles the tiles."""
        require_images("DeYO's shuffle", x[0])
        order = noise.uniform(x.shape[1], self.grid**2).argsort(dim=2, stable=True)
        return permute_tiles(x.flatten(0, 1), order.flatten(0, 1)).reshape(x.shape)


@dataclass(frozen=True)
class PixelShuffle:
    """One random permutation of all pixels per particle, shared by the batch."""

    def __call__(self, x: Tensor, noise: Noise) -> Tensor:
        """Shuffles the pixels."""
        require_images("DeYO's shuffle", x[0])
        order = noise.uniform(x.shape[-2] * x.shape[-1]).argsort(dim=1, stable=True)
        return x.flatten(3).gather(3, order[:, None, None, :].expand_as(x.flatten(3))).reshape(x.shape)


@dataclass(frozen=True)
class CentreOcclusion:
    """The central half of each image replaced by its mean colour."""

    def __call__(self, x: Tensor, noise: Noise) -> Tensor:
        """Covers the centre; nothing is random."""
        require_images("DeYO's shuffle", x[0])
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
