"""Ways to look at a batch of images: callables (B, ...) -> (B, ...) that treat every image alike."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from polytta.errors import ConfigError, InputError
from polytta.guard.images import require_images

View = Callable[[Tensor], Tensor]
_COLOURS = (1, 3, 4)

CONTRAST = 0.6
"""Standard deviation within an image: less than clear photographs have where images are normalised to deviate by 1, not
much more than they have where images are from -1 to 1."""
MOST_GAIN = 8.0
"""What is fainter than this was lost when pixels were rounded."""
LARGE = 128
"""Pixels a side from which half as many still show what there is."""


def unchanged(x: Tensor) -> Tensor:
    """The batch as it came."""
    return x


def horizontal_flip(x: Tensor) -> Tensor:
    """Left and right exchanged."""
    _require_images("horizontal_flip", x)
    return x.flip(-1)


def vertical_flip(x: Tensor) -> Tensor:
    """Top and bottom exchanged."""
    _require_images("vertical_flip", x)
    return x.flip(-2)


def farther(x: Tensor, scale: float = 7 / 8) -> Tensor:
    """As from farther away: smaller, its border repeated around it. Averages fine noise away."""
    _require_images("farther", x)
    small = _smaller(x, scale)
    rows, columns = (whole - part for whole, part in zip(x.shape[-2:], small.shape[-2:], strict=True))
    around = (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2)
    return functional.pad(small.to(x.dtype), around, mode="replicate")


def much_farther(x: Tensor) -> Tensor:
    """``farther``, to three quarters of the size."""
    _require_images("much_farther", x)
    return farther(x, 3 / 4)


def coarser(x: Tensor) -> Tensor:
    """With half as many pixels a side, brought back to size: averages noise away where images are large.

    Small ones need every pixel. They are seen ``much_farther`` away, which models of small images bear better than
    those of photographs do.
    """
    _require_images("coarser", x)
    if min(x.shape[-2:]) < LARGE:
        return much_farther(x)
    small = _smaller(x, 1 / 2)
    return functional.interpolate(small, size=x.shape[-2:], mode="bilinear", align_corners=False).to(x.dtype)


def softer(x: Tensor) -> Tensor:
    """Each pixel averaged with its neighbours, by a 3 x 3 binomial kernel."""
    _require_images("softer", x)
    # Sums of shifted images: a kernel would have to be brought from the host, which no CUDA graph may do.
    around = functional.pad(x, (1, 1, 1, 1), mode="replicate")
    rows = around[..., :-2, :] + 2 * around[..., 1:-1, :] + around[..., 2:, :]
    return (rows[..., :-2] + 2 * rows[..., 1:-1] + rows[..., 2:]) / 16


def sharper(x: Tensor) -> Tensor:
    """What ``softer`` would take away, added once more: an unsharp mask."""
    _require_images("sharper", x)
    return 2 * x - softer(x)


def much_sharper(x: Tensor) -> Tensor:
    """``sharper``, with twice as much added."""
    _require_images("much_sharper", x)
    return 3 * x - 2 * softer(x)


def clearer(x: Tensor) -> Tensor:
    """Each image with the contrast of a photograph, where it has less: what haze, fog and dim light take away.

        x + (g - 1) (x - m),    g = 0.6 / s, at least 1 and at most 8

    m is an image's mean colour and s its standard deviation around that. A model whose images are on another scale than
    those of most sees too much contrast, or none added; evidence finds out.
    """
    _require_images("clearer", x)
    exact = _exact(x)
    around = exact - exact.mean(dim=(-2, -1), keepdim=True)
    spread = around.square().mean(dim=(-3, -2, -1), keepdim=True).clamp(min=(CONTRAST / MOST_GAIN) ** 2).sqrt()
    return (exact + ((CONTRAST / spread).clamp(min=1) - 1) * around).to(x.dtype)


def clearer_mirrored(x: Tensor) -> Tensor:
    """``clearer``, left and right exchanged: two ways to look that rarely matter at once, for the price of one."""
    return clearer(horizontal_flip(x))


def _smaller(x: Tensor, scale: float) -> Tensor:
    # While a network is traced, sides are tensors, which round() does not take.
    sides = map(int, x.shape[-2:]) if torch.jit.is_tracing() else x.shape[-2:]  # type: ignore[attr-defined]
    size = [max(1, round(side * scale)) for side in sides]
    return functional.interpolate(_exact(x), size=size, mode="bilinear", antialias=True, align_corners=False)


def _exact(x: Tensor) -> Tensor:
    """Not every device can interpolate in half precision, and sums over an image are too coarse in it."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _require_images(name: str, x: Tensor) -> None:
    require_images(name, x)
    # A model may turn frames of a camera into what it needs itself; a view would mirror their colours.
    if x.dim() == 4 and x.shape[-1] in _COLOURS and min(x.shape[1:3]) > max(_COLOURS):
        raise InputError(
            f"x: got {tuple(x.shape)}, colours last, for the view {name!r}; allowed are colours first, (B, C, H, W), "
            "which input= of polytta.adapt can make."
        )


TRANSFORMS: dict[str, View] = {
    transform.__name__: transform
    for transform in (
        unchanged,
        horizontal_flip,
        vertical_flip,
        farther,
        much_farther,
        coarser,
        softer,
        sharper,
        much_sharper,
        clearer,
        clearer_mirrored,
    )
}


def seen_through(argument: str, transforms: Sequence[View], x: Tensor) -> list[Tensor]:
    """The batch through every one of them."""
    seen = [transform(x) for transform in transforms]
    for transform, image in zip(transforms, seen, strict=True):
        if image is x:
            continue
        if not isinstance(image, Tensor):
            raise ConfigError(
                f"{argument}: got {transform!r}, which returns a {type(image).__name__}; allowed is a tensor."
            )
        if image.shape != x.shape:
            raise ConfigError(
                f"{argument}: got {transform!r}, which turns {tuple(x.shape)} into {tuple(image.shape)}; "
                "allowed is the same shape."
            )
        if (image.dtype, image.device) != (x.dtype, x.device):
            raise ConfigError(
                f"{argument}: got {transform!r}, which turns {x.dtype} on {x.device} into {image.dtype} on "
                f"{image.device}; allowed is the same."
            )
    return seen
