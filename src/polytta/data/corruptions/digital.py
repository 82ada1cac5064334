"""Digital and colour changes: contrast, brightness, saturate, pixelate, JPEG and elastic transform.

With x in [0, 1], results clipped and cut to 8 bits:

    contrast           (x - m) c + m, m the mean of the channel; parameters (c,)
    brightness         V + c in HSV; parameters (c,)
    saturate           S a + b in HSV; parameters (a, b)
    pixelate           box-average to a fraction f of the size, then repeat pixels back; parameters (f,)
    jpeg_compression   JPEG at quality q; parameters (q,)
    elastic_transform  three corners of the centre square move by U(-m, m), which sets an affine map; then
                       every pixel moves by a N_sigma[U(-1, 1)] (noise under a normal filter); parameters
                       (a, sigma, m), in pixels

All but the last are deterministic and equal, bit for bit, to `imagecorruptions-imaug` at equal constants. Its
elastic transform is another one (no affine part, other constants); ours follows the published scripts.
"""

from io import BytesIO

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image

from polytta.data.corruptions._constants import Params
from polytta.data.corruptions._filters import UInt8Array, smooth_planes, to_uint8
from polytta.data.corruptions._random import ImageStreams

# Keeps grey levels of flat patches from falling by one under float32 interpolation; ten times its rounding.
_INTERPOLATION_MARGIN = 1e-3


def contrast(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Pull every value towards the mean of its channel."""
    (factor,) = params
    n, height, width, channels = images.shape
    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(n * channels, height * width)
    means = planes.sum(axis=1, dtype=np.uint32)[:, None] / 255.0 / (height * width)
    tables = to_uint8(np.clip((np.arange(256) / 255.0 - means) * factor + means, 0, 1) * 255)
    # `bytes.translate` is the fastest table look-up at hand: one pass, no index array.
    mapped = b"".join(p.tobytes().translate(t.tobytes()) for p, t in zip(planes, tables, strict=True))
    result = np.frombuffer(mapped, np.uint8).reshape(n, channels, height, width)
    return np.ascontiguousarray(result.transpose(0, 2, 3, 1))


def brightness(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Raise the value channel."""
    hue, saturation, value = _rgb_to_hsv(images)
    value += params[0]
    return _hsv_to_uint8(hue, saturation, np.clip(value, 0, 1, out=value))


def saturate(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Scale and shift the saturation channel."""
    hue, saturation, value = _rgb_to_hsv(images)
    saturation *= params[0]
    saturation += params[1]
    return _hsv_to_uint8(hue, np.clip(saturation, 0, 1, out=saturation), value)


def pixelate(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Average over boxes and show each average as a block."""
    height, width = images.shape[1:3]
    small_width, small_height = int(width * params[0]), int(height * params[0])
    row_of = ((np.arange(height) + 0.5) * (small_height / height)).astype(np.intp)
    result = np.empty_like(images)
    for image, target in zip(images, result, strict=True):
        reduced = Image.fromarray(image).resize((small_width, small_height), Image.Resampling.BOX)
        # Pillow repeats columns quickest; rows are then whole lines of memory to copy.
        widened = np.asarray(reduced.resize((width, small_height), Image.Resampling.NEAREST))
        np.take(widened, row_of, axis=0, out=target, mode="clip")
    return result


def jpeg_compression(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Store as JPEG and read back."""
    quality = int(params[0])
    height, width = images.shape[1:3]
    results = []
    for image in images:
        stored = BytesIO()
        Image.fromarray(image).save(stored, "JPEG", quality=quality)
        # Handing the bytes to the decoder spares the search for a format and the checks of a file.
        decoded = Image.frombytes("RGB", (width, height), stored.getbuffer(), "jpeg", "RGB", "")
        results.append(np.asarray(decoded))
    return _stack(results)


def _stack(results: list[UInt8Array]) -> UInt8Array:
    # A pass over large images holds one, which needs no copy.
    return results[0][None] if len(results) == 1 else np.stack(results)


def elastic_transform(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Stretch by a random affine map, then warp by a smooth random field."""
    alpha, sigma, corner_shift = params
    height, width = images.shape[1:3]
    shifts = streams.uniform(-corner_shift, corner_shift, 3, 2)
    warped = torch.from_numpy(images.transpose(0, 3, 1, 2).astype(np.float32))
    rows, columns = np.mgrid[:height, :width].astype(np.float64)
    inverses = [_corner_map_inverse(height, width, shift) for shift in shifts]
    source_columns = np.stack([m[0, 0] * columns + m[0, 1] * rows + m[0, 2] for m in inverses])
    source_rows = np.stack([m[1, 0] * columns + m[1, 1] * rows + m[1, 2] for m in inverses])
    warped = _sample(warped, source_columns, source_rows, mirror_repeats_edge=False)
    if alpha > 0:
        noise = streams.uniform(-1.0, 1.0, 2, height, width)
        across, down = (smooth_planes(np.ascontiguousarray(noise[:, axis]), sigma, 3.0, "reflect") for axis in range(2))
        source_columns = columns + alpha * across
        source_rows = rows + alpha * down
        warped = _sample(warped, source_columns, source_rows, mirror_repeats_edge=True)
    result = warped.permute(0, 2, 3, 1).numpy() + np.float32(_INTERPOLATION_MARGIN)
    return to_uint8(result)


def _corner_map_inverse(height: int, width: int, shift: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inverse, as rows for x and y, of the affine map that moves three corners of the centre by `shift`."""
    half = min(height, width) // 3
    middle = np.array([height // 2, width // 2], dtype=np.float64)
    corners = middle + half * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = corners + shift
    homogeneous = np.column_stack([moved, np.ones(3)])
    solution: NDArray[np.float64] = np.linalg.solve(homogeneous, corners).T
    return solution


def _sample(
    planes: torch.Tensor,
    columns: NDArray[np.float64],
    rows: NDArray[np.float64],
    *,
    mirror_repeats_edge: bool,
) -> torch.Tensor:
    """Bilinear values of NCHW planes at the given positions; beyond the border the image is mirrored."""
    height, width = planes.shape[-2:]
    if mirror_repeats_edge:
        grid = np.stack([(2 * columns + 1) / width - 1, (2 * rows + 1) / height - 1], axis=-1)
    else:
        grid = np.stack([2 * columns / (width - 1) - 1, 2 * rows / (height - 1) - 1], axis=-1)
    positions = torch.from_numpy(grid.astype(np.float32))
    return F.grid_sample(planes, positions, padding_mode="reflection", align_corners=not mirror_repeats_edge)


def _rgb_to_hsv(
    images: UInt8Array,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Hue, saturation and value in [0, 1].

    Steps and their order are those of the usual float64 conversion: brightness constants move many pixels
    exactly onto a grey level, where the last bit decides.
    """
    red, green, blue = (np.ascontiguousarray(images[..., c]) / 255.0 for c in range(3))
    value = np.maximum(np.maximum(red, green), blue)
    spread = value - np.minimum(np.minimum(red, green), blue)
    grey = spread == 0
    divisor = np.where(grey, 1.0, spread)
    hue = np.where(value == green, 2.0 + (blue - red) / divisor, (green - blue) / divisor)
    np.copyto(hue, 4.0 + (red - green) / divisor, where=value == blue)
    hue /= 6.0
    hue += hue < 0
    np.copyto(hue, 0.0, where=grey)
    saturation = np.divide(spread, value, out=np.zeros_like(spread), where=~grey)
    return hue, saturation, value


def _hsv_to_uint8(hue: NDArray[np.float64], saturation: NDArray[np.float64], value: NDArray[np.float64]) -> UInt8Array:
    """RGB bytes of a colour given in HSV; the hue circle has six sectors."""
    hue *= 6.0
    sector_start = np.floor(hue)
    fraction = hue - sector_start
    sector = sector_start.astype(np.uint8)
    low, falling, rising, high = (
        (np.clip(level, 0, 1, out=level) * 255).astype(np.uint8)
        for level in (
            value * (1.0 - saturation),
            value * (1.0 - fraction * saturation),
            value * (1.0 - (1.0 - fraction) * saturation),
            value,
        )
    )
    result = np.empty((*value.shape, 3), dtype=np.uint8)
    # Each channel runs through the same six levels, two sectors (a third of the circle) after the one before.
    levels = (high, falling, low, low, rising, high)
    for channel in range(3):
        plane = high.copy()
        for step, level in enumerate(levels):
            if level is not high:
                np.copyto(plane, level, where=sector == (step + 2 * channel) % 6)
        result[..., channel] = plane
    return result
