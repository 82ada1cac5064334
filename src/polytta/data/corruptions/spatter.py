"""Spatter: drops of water (severities 1-3) or mud (4-5) on the lens.

A liquid layer L is normal noise (mean m, deviation v) under a Gaussian filter, zero below a threshold t.
Parameters (m, v, filter sigma, t, strength, mud), mud being 0 or 1.

    water  D = distance to the nearest Canny edge of L, capped at 20, box-filtered, histogram-equalised,
           embossed and box-filtered again; result x + strength L D / max(L D) times pale turquoise (175, 238,
           238)
    mud    M = Gaussian of [L > t] (sigma = strength), zero below 0.8; result x (1 - M) + M times brown (63,
           42, 20)

Canny's detector (thresholds 50 and 150, 3x3 Sobel, |gx| + |gy|) and the distance (the 5x5 chamfer metric with
weights 1, 1.4 and 2.1969) follow OpenCV, which the published scripts call.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from polytta.data.corruptions._constants import Params
from polytta.data.corruptions._filters import UInt8Array, blend, smooth_planes
from polytta.data.corruptions._random import ImageStreams

_WATER = (175.0, 238.0, 238.0)
_MUD = (63.0, 42.0, 20.0)
_EMBOSS = ((-2, -1, 0), (-1, 1, 1), (0, 1, 2))
_FAR = 20


def spatter(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Spatter water or mud over the image."""
    mean, deviation, sigma, threshold, strength, mud = params
    height, width = images.shape[1:3]
    liquid = smooth_planes(streams.normal(height, width).astype(np.float64), sigma, 4.0, "nearest")
    liquid = liquid * deviation + mean
    if mud:
        splash = (liquid > threshold).astype(np.float64)
        cover = smooth_planes(splash, strength, 4.0, "nearest").astype(np.float32)
        cover[cover < 0.8] = 0
        return blend(images, 1 - cover, cover, _MUD)
    liquid[liquid < threshold] = 0
    drops = (liquid * 255).astype(np.uint8)
    relief = water_relief(drops)
    # An image without a drop has a relief of zero everywhere: dividing by at least one leaves it as it is.
    peak = np.maximum(relief.max(axis=(1, 2), keepdims=True), 1)
    return blend(images, np.float32(1), relief * (np.float32(strength) / peak), _WATER)


def water_relief(drops: UInt8Array) -> NDArray[np.float32]:
    """Shading of the water layer, not yet scaled: (N, H, W)."""
    distance = edge_distance(canny_edges(drops))
    # The sum of nine values is cut, not rounded; the margin keeps float32 from cutting a whole number.
    levels = (_box_sum(distance) / np.float32(9) + np.float32(1e-4)).astype(np.uint8)
    embossed = np.clip(_emboss(_equalise(levels)), 0, 255)
    shading = np.floor(_box_sum(embossed).astype(np.float32) * np.float32(1 / 9) + np.float32(0.5))
    relief: NDArray[np.float32] = drops * shading
    return relief


def canny_edges(grey: UInt8Array) -> NDArray[np.bool_]:
    """Canny edges of an (N, H, W) batch at thresholds 50 and 150."""
    n, height, width = grey.shape
    padded = np.pad(grey.astype(np.int16), ((0, 0), (1, 1), (1, 1)), mode="edge")
    vertical = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    gx = vertical[:, :, 2:] - vertical[:, :, :-2]
    horizontal = padded[:, :, :-2] + 2 * padded[:, :, 1:-1] + padded[:, :, 2:]
    gy = horizontal[:, 2:] - horizontal[:, :-2]
    magnitude = np.zeros((n, height + 2, width + 2), dtype=np.int16)
    magnitude[:, 1:-1, 1:-1] = np.abs(gx) + np.abs(gy)
    stride = width + 2
    flat = magnitude.ravel()
    candidate = np.flatnonzero(flat > 50)
    image, inner = np.divmod(candidate, (height + 2) * stride)
    row, column = np.divmod(inner, stride)
    x = gx[image, row - 1, column - 1].astype(np.int64)
    y = gy[image, row - 1, column - 1].astype(np.int64)
    # tan(22.5 degrees) in 15-bit fixed point splits the directions into four sectors.
    shallow = np.abs(x) * 13573
    steep = shallow + (np.abs(x) << 16)
    climb = np.abs(y) << 15
    diagonal = np.where((x ^ y) < 0, stride - 1, stride + 1)
    offset = np.where(climb < shallow, 1, np.where(climb > steep, stride, diagonal))
    strength, before, after = flat[candidate], flat[candidate - offset], flat[candidate + offset]
    is_diagonal = (climb >= shallow) & (climb <= steep)
    ridge = (strength > before) & np.where(is_diagonal, strength > after, strength >= after)
    edges = np.zeros(flat.shape, dtype=bool)
    weak = np.zeros(flat.shape, dtype=bool)
    edges[candidate[ridge & (strength > 150)]] = True
    weak[candidate[ridge & (strength <= 150)]] = True
    _grow(edges, weak, stride)
    inner_edges: NDArray[np.bool_] = edges.reshape(magnitude.shape)[:, 1:-1, 1:-1]
    return inner_edges


def _grow(edges: NDArray[np.bool_], weak: NDArray[np.bool_], stride: int) -> None:
    """Turn weak pixels into edges wherever they touch one, until none is left that does."""
    around = np.array([dy * stride + dx for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx])
    front = np.flatnonzero(weak)
    while front.size:
        joined = edges[front[:, None] + around].any(axis=1)
        if not joined.any():
            return
        edges[front[joined]] = True
        front = front[~joined]


def edge_distance(edges: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Chamfer distance of every pixel of an (N, H, W) batch to the nearest edge, capped at 20."""
    height, width = edges.shape[1:]
    columns = np.arange(width, dtype=np.int16)
    unreached = np.int16(-width - _FAR)
    last = np.maximum.accumulate(np.where(edges, columns, unreached), axis=2)
    mirrored = np.maximum.accumulate(np.where(edges[:, :, ::-1], columns, unreached), axis=2)
    before, after = columns - last, (columns - mirrored)[:, :, ::-1]
    along = np.minimum(np.minimum(before, after), _FAR).astype(np.uint8)
    values, codes = _chamfer_codes()
    padded = np.pad(along, ((0, 0), (_FAR, _FAR), (0, 0)), constant_values=_FAR)
    nearest_code = np.full(along.shape, len(values) - 1, dtype=np.uint8)
    for rise in range(_FAR):
        # The metric grows with the horizontal distance, so of the rows above and below the nearer one
        # decides.
        above = padded[:, _FAR - rise : _FAR - rise + height]
        nearer = np.minimum(above, padded[:, _FAR + rise : _FAR + rise + height])
        reached = np.frombuffer(nearer.tobytes().translate(codes[rise]), np.uint8).reshape(along.shape)
        np.minimum(nearest_code, reached, out=nearest_code)
    return np.take(values, nearest_code)


@lru_cache(maxsize=1)
def _chamfer_codes() -> tuple[NDArray[np.float32], list[bytes]]:
    """The distinct distances up to the cap in rising order, and tables into them.

    Table k turns a horizontal offset, at vertical offset k, into the position of the distance. There are
    fewer than 256 distances, so positions compare as bytes.
    """
    offsets = np.arange(_FAR + 1, dtype=np.float64)
    longer = np.maximum(offsets[:, None], offsets)
    shorter = np.minimum(offsets[:, None], offsets)
    distance = np.maximum(longer + 0.1969 * shorter, 0.7969 * longer + 0.6031 * shorter)
    values, codes = np.unique(np.minimum(distance, _FAR).round(9), return_inverse=True)
    tables = np.zeros((_FAR + 1, 256), dtype=np.uint8)
    tables[:, : _FAR + 1] = codes.reshape(distance.shape)
    return values.astype(np.float32), [table.tobytes() for table in tables]


def _box_sum(planes: NDArray[np.generic]) -> NDArray[np.generic]:
    """Sum over 3x3 neighbours; borders mirror without repeating the edge pixel."""
    padded = np.pad(planes, ((0, 0), (1, 1), (1, 1)), mode="reflect")
    rows = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    total: NDArray[np.generic] = rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:]
    return total


def _equalise(levels: UInt8Array) -> NDArray[np.int16]:
    """Histogram equalisation of each image, levels 0 to 20."""
    n, height, width = levels.shape
    bins = _FAR + 1
    keys = levels + (np.arange(n) * bins)[:, None, None]
    counts = np.bincount(keys.ravel(), minlength=n * bins).reshape(n, bins)
    table = np.empty((n, bins), dtype=np.int16)
    for row, histogram in enumerate(counts):
        lowest = int(np.flatnonzero(histogram)[0])
        others = height * width - int(histogram[lowest])
        if others == 0:
            table[row] = lowest
            continue
        table[row] = np.rint((np.cumsum(histogram) - histogram[lowest]) * (255.0 / others)).clip(0)
    return np.take(table.ravel(), keys)


def _emboss(planes: NDArray[np.int16]) -> NDArray[np.int16]:
    height, width = planes.shape[1:]
    padded = np.pad(planes, ((0, 0), (1, 1), (1, 1)), mode="reflect")
    total = np.zeros_like(planes)
    for dy, weights in enumerate(_EMBOSS):
        for dx, weight in enumerate(weights):
            if weight:
                total += np.int16(weight) * padded[:, dy : dy + height, dx : dx + width]
    return total
