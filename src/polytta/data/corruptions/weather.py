"""Weather: snow, frost and fog.

With x in [0, 1]:

    fog    (x + a F) max(x) / (max(x) + a), F a plasma fractal in [0, 1] whose roughness falls by the factor d
           at every halving of the grid; parameters (a, d)
    frost  a x + b f, f a random crop of a frost photograph; parameters (a, b, keep every k-th pixel of the
           photograph)
    snow   w x + (1 - w) max(x, 1.5 grey(x) + 0.5) + s + s turned by 180 degrees, s being normal noise (mean
           m, deviation v), its centre enlarged z times, zero below t, smeared by motion blur (radius r, sigma
           q) at an angle from U(-135, -45) degrees; parameters (m, v, z, t, r, q, w)

Results are clipped and cut to 8 bits. The frost photographs and their origin are in `overlays/`. The
published scripts draw among the first five of six photographs and crop them as they are;
`imagecorruptions-imaug` draws among six and enlarges them by 1.1.
"""

import math
from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from polytta.data.corruptions._constants import Params
from polytta.data.corruptions._filters import UInt8Array, blend, centre_zoom_map, motion_blur_float, to_uint8
from polytta.data.corruptions._random import ImageStreams

_FROST_PHOTOGRAPHS = ("frost1.webp", "frost2.webp", "frost2.webp", "frost4.jpg", "frost5.jpg")
_LUMA = (np.float32(0.299), np.float32(0.587), np.float32(0.114))


def fog(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Lay a cloudy veil over the image."""
    amount, decay = params
    height, width = images.shape[1:3]
    veil = plasma_fractal(streams, _next_power_of_two(max(height, width)), decay)[:, :height, :width]
    brightest = images.reshape(len(images), -1).max(axis=1)[:, None, None] / np.float32(255)
    # An all-black image stays black: its brightest value is zero.
    gain = brightest / (brightest + np.float32(amount))
    return blend(images, gain, veil * gain, (255 * amount,) * 3)


def frost(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Blend with a crop of a frost photograph."""
    image_weight, frost_weight, stride = params
    height, width = images.shape[1:3]
    choices = streams.integers(np.full((len(images), 1), len(_FROST_PHOTOGRAPHS)))[:, 0]
    photographs = [_frost_photograph(int(choice), int(stride), height, width) for choice in choices]
    room = np.array([[p.shape[0] - height, p.shape[1] - width] for p in photographs])
    corners = streams.integers(room)
    result = images * np.float32(image_weight)
    for target, photograph, (top, left) in zip(result, photographs, corners, strict=True):
        target += photograph[top : top + height, left : left + width] * np.float32(frost_weight)
    return to_uint8(result)


def snow(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Whiten the image and add streaks of flakes."""
    mean, deviation, zoom, threshold, radius, sigma, keep = params
    height, width = images.shape[1:3]
    noise = streams.normal(height, width).astype(np.float64)
    flakes = centre_zoom_map(width, zoom).along_width(centre_zoom_map(height, zoom).along_height(noise))
    flakes *= deviation
    flakes += mean
    np.putmask(flakes, flakes < threshold, 0)
    flakes *= 255
    layer = to_uint8(flakes).astype(np.float32)
    angles = streams.uniform(-135.0, -45.0, 1)[:, 0]
    streaks = np.stack(
        [
            motion_blur_float(flat[..., None], int(radius), sigma, float(angle))
            for flat, angle in zip(layer, angles, strict=True)
        ]
    )[..., 0]
    np.rint(streaks, out=streaks)
    streaks = streaks + streaks[:, ::-1, ::-1]
    planes = [images[..., channel].astype(np.float32) for channel in range(3)]
    grey = sum(weight * plane for weight, plane in zip(_LUMA, planes, strict=True))
    pale = np.float32(1.5) * grey + np.float32(127.5)
    result = np.empty_like(images)
    for channel, plane in enumerate(planes):
        snowy = np.maximum(plane, pale) * np.float32(1 - keep)
        snowy += plane * np.float32(keep)
        snowy += streaks
        result[..., channel] = to_uint8(snowy)
    return result


def plasma_fractal(streams: ImageStreams, size: int, decay: float) -> NDArray[np.float32]:
    """Height maps in [0, 1] by the diamond-square algorithm on a torus; `size` must be a power of two."""
    heights = np.zeros((len(streams), size, size), dtype=np.float32)
    draws = streams.uint16(size * size)
    used = 0
    wibble, step = 100.0, size
    while step >= 2:
        half = step // 2
        cells = (size // step) ** 2
        jitter = draws[:, used : used + 3 * cells].reshape(len(streams), 3, size // step, size // step)
        jitter = (jitter.astype(np.float32) - np.float32(32767.5)) * np.float32(wibble * wibble / 32768)
        used += 3 * cells
        corners = heights[:, ::step, ::step].copy()
        columns = corners + np.roll(corners, -1, axis=1)
        centres = (columns + np.roll(columns, -1, axis=2)) * np.float32(0.25) + jitter[:, 0]
        heights[:, half::step, half::step] = centres
        above = centres + np.roll(centres, 1, axis=1)
        beside = corners + np.roll(corners, -1, axis=2)
        heights[:, ::step, half::step] = (above + beside) * np.float32(0.25) + jitter[:, 1]
        left = centres + np.roll(centres, 1, axis=2)
        below = corners + np.roll(corners, -1, axis=1)
        heights[:, half::step, ::step] = (left + below) * np.float32(0.25) + jitter[:, 2]
        step = half
        wibble /= decay
    heights -= heights.min(axis=(1, 2), keepdims=True)
    heights /= heights.max(axis=(1, 2), keepdims=True)
    return heights


def _next_power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


@lru_cache(maxsize=32)
def _frost_photograph(index: int, stride: int, height: int, width: int) -> UInt8Array:
    """A frost photograph with room for a random crop of the given size.

    The published CIFAR script shrinks five times by bilinear sampling, whose sample points then fall on every
    fifth pixel from the third on. A photograph smaller than the image, which the scripts never met, is
    enlarged to fit.
    """
    path = resources.files(__package__) / "overlays" / _FROST_PHOTOGRAPHS[index]
    with path.open("rb") as stream, Image.open(stream) as stored:
        photograph = np.asarray(stored.convert("RGB"))
    rows, columns = (round(side / stride) for side in photograph.shape[:2])
    photograph = photograph[stride // 2 :: stride, stride // 2 :: stride][:rows, :columns]
    scale = max((height + 1) / photograph.shape[0], (width + 1) / photograph.shape[1])
    if scale > 1:
        fitted = (math.ceil(photograph.shape[1] * scale), math.ceil(photograph.shape[0] * scale))
        photograph = np.asarray(Image.fromarray(photograph).resize(fitted, Image.Resampling.BICUBIC))
    return np.ascontiguousarray(photograph)
