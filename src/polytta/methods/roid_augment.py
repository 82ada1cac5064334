r"""The augmentation of ROID's consistency term: colours in random order, then a small turn, shift, zoom and mirroring.

    x → clip → brightness, contrast, saturation, hue, gamma (any order) → affine, borders reflected → mirror → clip

CoTTA's augmentation (Wang et al., CVPR 2022) as ROID's public code uses it: one draw for all images of a batch, here of
each particle. It is defined on colours in [0, 1]; ``in_unit_range`` says where those of a normalized batch lie.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, pi

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from polytta.errors import ConfigError
from polytta.guard.images import require_images
from polytta.roles.noise import Noise

Augment = Callable[[Tensor, Noise], Tensor]
"""From images (K, B, C, H, W) in [0, 1] to others of the same shape."""
Bound = float | tuple[float, ...]
"""One value, or one per channel."""

LOWEST = (0.6, 0.7, 0.5, -0.06, 0.7)
HIGHEST = (1.4, 1.3, 1.5, 0.06, 1.3)


@dataclass(frozen=True)
class Draw:
    """What is done to the images of each particle.

    Attributes:
        order: (K, 5) sequence of brightness (0), contrast, saturation, hue and gamma (4).
        factor: (K, 5) of each of these, in that numbering; of hue in turns.
        angle: (K,) in degrees, clockwise.
        shift: (K, 2) in pixels, to the right and down.
        scale: (K,).
        mirrored: (K,) booleans.
    """

    order: Tensor
    factor: Tensor
    angle: Tensor
    shift: Tensor
    scale: Tensor
    mirrored: Tensor

    @classmethod
    def of(cls, noise: Noise, height: int, width: int, dtype: torch.dtype) -> "Draw":
        """Random ones, for images of that size: shifts up to an eighth of it, in whole pixels."""
        order = noise.uniform(5).argsort(dim=1, stable=True)
        places = noise.uniform(10).to(dtype)
        ranges = zip(LOWEST, HIGHEST, strict=True)
        factor = [low + (high - low) * places[:, i] for i, (low, high) in enumerate(ranges)]
        turn, right, down, zoom, side = (places[:, i] for i in range(5, 10))
        shift = [((2 * right - 1) * width / 8).round(), ((2 * down - 1) * height / 8).round()]
        return cls(
            order,
            torch.stack(factor, dim=1),
            (2 * turn - 1) * 15,
            torch.stack(shift, dim=1),
            0.9 + 0.2 * zoom,
            side < 0.5,
        )


def augmented(x: Tensor, noise: Noise) -> Tensor:
    """A random copy of the images (K, B, C, H, W) in [0, 1]."""
    require_images("ROID's augmentation", x[0])
    exact = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    return redrawn(x.to(exact), Draw.of(noise, x.shape[-2], x.shape[-1], exact)).to(x.dtype)


def redrawn(x: Tensor, draw: Draw) -> Tensor:
    """A known copy of the images (K, B, C, H, W) in [0, 1]."""
    x = x.clamp(0, 1)
    for place in range(5):
        # Particles differ in what comes next, and which does is not known to the host.
        after = x
        for number, operation in enumerate((_brighter, _contrasted, _saturated, _hue_turned, _gamma)):
            chosen = _per_image(draw.order[:, place] == number)
            after = torch.where(chosen, operation(x, _per_image(draw.factor[:, number])), after)
        x = after
    return _moved(x, draw).clamp(0, 1)


def in_unit_range(change: Augment, x: Tensor, noise: Noise, value_range: tuple[Bound, Bound] | None) -> Tensor:
    """Changes images (K, B, C, ...) whose black and white are given, or else taken as each channel's extremes in x."""
    if value_range is None:
        across = [1, *range(3, x.dim())]
        low, high = x.amin(dim=across, keepdim=True), x.amax(dim=across, keepdim=True)
    else:
        low, high = (_per_channel(bound, x) for bound in value_range)
    span = high - low
    inside = (x - low) / torch.where(span == 0, torch.ones_like(span), span)
    return low + span * change(inside, noise)


def require_range(value_range: tuple[Bound, Bound] | None) -> None:
    """Raises ConfigError unless black is below white in every channel."""
    if value_range is None:
        return
    fine = isinstance(value_range, tuple) and len(value_range) == 2
    if fine:
        low, high = (bound if isinstance(bound, tuple) else (bound,) for bound in value_range)
        channels = max(len(low), len(high))
        low, high = (bound * channels if len(bound) == 1 else bound for bound in (low, high))
        fine = 0 < len(low) == len(high) and all(-inf < one < other < inf for one, other in zip(low, high, strict=True))
    if not fine:
        raise ConfigError(
            f"method: got ROID(value_range={value_range!r}); allowed are (black, white), one value or one per channel "
            "each, black below white."
        )


def _per_channel(bound: Bound, x: Tensor) -> Tensor:
    # Filled in on the device: a graph under capture must not copy from the host.
    values = torch.stack([x.new_full((), value) for value in (bound if isinstance(bound, tuple) else (bound,))])
    return values.reshape(-1, *[1] * (x.dim() - 3))


def _per_image(values: Tensor) -> Tensor:
    return values.reshape(-1, 1, 1, 1, 1)


def _grey(x: Tensor) -> Tensor:
    if x.shape[2] != 3:
        return x.mean(dim=2, keepdim=True)
    red, green, blue = x.split(1, dim=2)
    return 0.2989 * red + 0.587 * green + 0.114 * blue


def _blended(x: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return (factor * x + (1 - factor) * other).clamp(0, 1)


def _brighter(x: Tensor, factor: Tensor) -> Tensor:
    return (factor * x).clamp(0, 1)


def _contrasted(x: Tensor, factor: Tensor) -> Tensor:
    return _blended(x, _grey(x).mean(dim=(2, 3, 4), keepdim=True), factor)


def _saturated(x: Tensor, factor: Tensor) -> Tensor:
    return _blended(x, _grey(x), factor)


def _gamma(x: Tensor, factor: Tensor) -> Tensor:
    return (x.clamp(min=1e-8) ** factor).clamp(0, 1)


def _hue_turned(x: Tensor, turns: Tensor) -> Tensor:
    """Colours moved around the hexagon of hues; images that are not of three channels have none."""
    if x.shape[2] != 3:
        return x
    red, green, blue = x.split(1, dim=2)
    most, least = x.amax(dim=2, keepdim=True), x.amin(dim=2, keepdim=True)
    chroma = most - least
    colour = torch.where(chroma == 0, torch.ones_like(chroma), chroma)
    others = torch.where(most == green, 2 + (blue - red) / colour, 4 + (red - green) / colour)
    corner = torch.where(most == red, (green - blue) / colour, others) + 6 * turns
    channels = []
    for start in (5, 3, 1):
        away = (corner + start) % 6
        channels.append(most - chroma * torch.minimum(away, 4 - away).clamp(0, 1))
    return torch.cat(channels, dim=2)


def _moved(x: Tensor, draw: Draw) -> Tensor:
    """Turned, shifted, zoomed and mirrored; what lies outside of an image is its reflection."""
    particles, _, _, height, width = x.shape
    across = torch.arange(width, dtype=x.dtype, device=x.device) - (width - 1) / 2
    along = torch.arange(height, dtype=x.dtype, device=x.device) - (height - 1) / 2
    angle, scale, mirrored = (
        one.reshape(-1, 1, 1) for one in (draw.angle * (pi / 180), draw.scale, 1 - 2 * draw.mirrored.to(x.dtype))
    )
    right = mirrored * across - draw.shift[:, :1, None]
    down = along.unsqueeze(1) - draw.shift[:, 1:, None]
    from_x = (angle.cos() * right + angle.sin() * down) / scale
    from_y = (angle.cos() * down - angle.sin() * right) / scale
    grid = torch.stack([from_x * (2 / max(width - 1, 1)), from_y * (2 / max(height - 1, 1))], dim=-1)
    # One draw for all images of a particle, so these may be more channels of one.
    moved = grid_sample(x.reshape(particles, -1, height, width), grid, padding_mode="reflection", align_corners=True)
    return moved.reshape(x.shape)
