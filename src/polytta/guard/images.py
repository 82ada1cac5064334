"""What needs images with height and width says so before it fails."""

from torch import Tensor

from polytta.errors import InputError


def require_images(who: str, x: Tensor) -> None:
    """Raises InputError unless ``x`` is a batch of images with height and width."""
    if x.dim() != 4:
        raise InputError(f"x: {who} got shape {tuple(x.shape)}; allowed are images (B, C, H, W).")
