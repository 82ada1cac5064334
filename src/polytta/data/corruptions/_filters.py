"""Linear filters and resampling shared by the corruptions.

A separable filter or a zoom along one axis is a matrix that is zero outside a band. Applied as dense blocks
of that band it runs at the speed of the matrix product and folds the border rule into the matrix, so nothing
is padded. Filters work in float64: their rounding (1e-13 grey levels) cannot move a pixel across a grey level
that the published float64 scripts cut at, whatever the batch, the number of threads or the library below.
"""

import math
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

UInt8Array = NDArray[np.uint8]
_BLOCK_ROWS = 32
# Far above the rounding of the filters, far below the distance of other pixels from a grey level.
_SNAP = 1e-11


def to_uint8(values: NDArray[np.floating]) -> UInt8Array:
    """Clip to 0..255 in place and cut to 8 bits."""
    np.clip(values, 0, 255, out=values)
    return values.astype(np.uint8)


def blend(
    images: UInt8Array,
    image_weight: np.float32 | NDArray[np.float32],
    layer: NDArray[np.float32],
    colour: tuple[float, float, float],
) -> UInt8Array:
    """`image_weight * images + layer * colour` cut to 8 bits; weight and layer are (N, H, W) or broadcast to
    it.

    Channel by channel: a broadcast over an innermost axis of three is several times slower.
    """
    result = np.empty_like(images)
    for channel, tint in enumerate(colour):
        plane = images[..., channel] * image_weight
        plane += layer * np.float32(tint)
        result[..., channel] = to_uint8(plane)
    return result


class BandedMap:
    """A linear map along one axis, kept as the dense blocks of its band."""

    def __init__(self, matrix: NDArray[np.float64]):
        self._size = matrix.shape[0]
        self._blocks = []
        for start in range(0, self._size, _BLOCK_ROWS):
            rows = matrix[start : start + _BLOCK_ROWS]
            used = np.flatnonzero(rows.any(axis=0))
            low, high = int(used[0]), int(used[-1]) + 1
            block = np.ascontiguousarray(rows[:, low:high])
            transposed = np.ascontiguousarray(block.T)
            self._blocks.append(
                (slice(start, start + len(block)), slice(low, high), torch.from_numpy(block), transposed)
            )

    def along_height(self, planes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply to axis 1 of a contiguous (N, H, K) array."""
        result = np.empty((planes.shape[0], self._size, planes.shape[2]))
        # One product of fixed shape per image keeps an image's bits free of its neighbours in the batch.
        for image, target in zip(torch.from_numpy(planes), torch.from_numpy(result), strict=True):
            for rows, used, block, _ in self._blocks:
                torch.mm(block, image[used], out=target[rows])
        return result

    def along_width(self, planes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply to the last axis of a contiguous array."""
        flat = planes.reshape(-1, planes.shape[-1])
        result = np.empty((len(flat), self._size))
        # NumPy's product writes into a strided slice; torch's would go through a copy, at three times the
        # cost.
        for rows, used, _, transposed in self._blocks:
            np.matmul(flat[:, used], transposed, out=result[:, rows])
        return result.reshape(*planes.shape[:-1], self._size)


def to_planes(images: UInt8Array) -> NDArray[np.float64]:
    """Grey values of an NHWC batch as float64 in (N, H, C, W) order: both axes filter without a copy."""
    planes: NDArray[np.float64] = images.transpose(0, 1, 3, 2).astype(np.float64, order="C")
    return planes


def filter_planes(planes: NDArray[np.float64], height_map: BandedMap, width_map: BandedMap) -> NDArray[np.float64]:
    """Apply one map along H and one along W of a contiguous (N, H, C, W) array."""
    n, height, channels, width = planes.shape
    rows_done = height_map.along_height(planes.reshape(n, height, channels * width))
    return width_map.along_width(rows_done.reshape(n, -1, channels, width))


def smooth_planes(
    planes: NDArray[np.float64], sigma: float, truncate: float, border: Literal["nearest", "reflect"]
) -> NDArray[np.float64]:
    """Gaussian smoothing of a contiguous (N, H, W) array."""
    rows_done = gaussian_map(planes.shape[1], sigma, truncate, border).along_height(planes)
    return gaussian_map(planes.shape[2], sigma, truncate, border).along_width(rows_done)


def gaussian_weights(sigma: float, truncate: float) -> NDArray[np.float64]:
    """Normalised Gaussian samples out to `truncate` sigmas, as SciPy's `gaussian_filter` takes them."""
    radius = int(truncate * sigma + 0.5)
    if radius == 0:
        return np.ones(1)
    offsets = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 / (sigma * sigma) * offsets**2)
    normalised: NDArray[np.float64] = weights / weights.sum()
    return normalised


@lru_cache(maxsize=64)
def gaussian_map(size: int, sigma: float, truncate: float, border: Literal["nearest", "reflect"]) -> BandedMap:
    """Gaussian smoothing along an axis of `size` pixels."""
    weights = gaussian_weights(sigma, truncate)
    radius = len(weights) // 2
    targets = np.arange(size)[:, None]
    sources = targets + np.arange(-radius, radius + 1)
    if border == "nearest":
        sources = np.clip(sources, 0, size - 1)
    else:
        sources = sources % (2 * size)
        sources = np.minimum(sources, 2 * size - 1 - sources)
    matrix = np.zeros((size, size))
    np.add.at(matrix, (np.broadcast_to(targets, sources.shape), sources), weights)
    return BandedMap(matrix)


@lru_cache(maxsize=256)
def centre_zoom_map(size: int, factor: float) -> BandedMap:
    """Linear enlargement of the centre of an axis by `factor`, cut back to `size` pixels."""
    crop = math.ceil(size / factor)
    first = (size - crop) // 2
    enlarged = round(crop * factor)
    trim = (enlarged - size) // 2
    step = (crop - 1) / (enlarged - 1)
    positions = (np.arange(size) + trim) * step
    below = np.minimum(np.floor(positions).astype(np.int64), crop - 2)
    fraction = positions - below
    matrix = np.zeros((size, size))
    targets = np.arange(size)
    matrix[targets, first + below] = 1 - fraction
    matrix[targets, first + below + 1] += fraction
    return BandedMap(matrix)


@lru_cache(maxsize=64)
def _flat_greys(sigma: float) -> UInt8Array:
    """What the published scripts make of a flat patch of each grey value.

    There the exact answer is a whole grey level, and the cut to 8 bits keeps it or drops one level depending
    on the last bit of their sum; the sum is repeated in their order (centre first, then pairs from the
    outside in).
    """
    weights = gaussian_weights(sigma, 4.0)
    radius = len(weights) // 2
    values = np.arange(256) / 255.0
    for _axis in range(2):
        total = values * weights[radius]
        for pair in range(radius):
            total = total + (values + values) * weights[pair]
        values = total
    return to_uint8(np.clip(values, 0, 1) * 255)


def gaussian_blur_uint8(images: UInt8Array, sigma: float) -> UInt8Array:
    """Gaussian blur of an NHWC batch with edges repeated, four sigmas wide, cut to 8 bits."""
    height, width = images.shape[1:3]
    blurred = filter_planes(
        to_planes(images),
        gaussian_map(height, sigma, 4.0, "nearest"),
        gaussian_map(width, sigma, 4.0, "nearest"),
    )
    # Cutting with a margin raises pixels a hair below a whole level to it; those at a whole level then show.
    blurred += _SNAP
    result = blurred.astype(np.uint8)
    blurred -= result
    whole = blurred < 2 * _SNAP
    result[whole] = _flat_greys(sigma)[result[whole]]
    return np.ascontiguousarray(result.transpose(0, 1, 3, 2))


def motion_offsets(radius: int, sigma: float, angle: float) -> list[tuple[int, int, float]]:
    """The 2 radius + 1 taps (dy, dx, weight) of a one-sided Gaussian streak, laid as ImageMagick does."""
    width = 2 * radius + 1
    steps = np.arange(width)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    weights /= weights.sum()
    rise, run = math.sin(math.radians(angle)), math.cos(math.radians(angle))
    return [
        (math.ceil(step * rise - 0.5), math.ceil(step * run - 0.5), float(weight))
        for step, weight in zip(range(width), weights, strict=True)
    ]


def motion_blur_float(image: NDArray[np.float32], radius: int, sigma: float, angle: float) -> NDArray[np.float32]:
    """Blur one HWC image along a streak; pixels beyond the border repeat the border."""
    height, width = image.shape[:2]
    taps = motion_offsets(radius, sigma, angle)
    down = [tap[0] for tap in taps]
    right = [tap[1] for tap in taps]
    top, left = max(0, -min(down)), max(0, -min(right))
    pad = ((top, max(0, *down)), (left, max(0, *right)), (0, 0))
    padded = torch.from_numpy(np.pad(image, pad, mode="edge"))
    total = torch.zeros(image.shape)
    for dy, dx, weight in taps:
        total.add_(padded[top + dy : top + dy + height, left + dx : left + dx + width], alpha=weight)
    result: NDArray[np.float32] = total.numpy()
    return result
