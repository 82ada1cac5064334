"""Noise: gaussian, shot, impulse and speckle.

With x in [0, 1] and one independent draw per pixel and channel:

    gaussian_noise  x + s n                      n ~ N(0, 1), parameters (s,)
    shot_noise      k / c                        k ~ Poisson(c x), parameters (c,)
    impulse_noise   0 or 1 with probability a/2 each, else x, parameters (a,)
    speckle_noise   x + s x n                    n ~ N(0, 1), parameters (s,)

The result is clipped to [0, 1] and cut (not rounded) to 8 bits, as the published scripts do.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from polytta.data.corruptions._constants import Params
from polytta.data.corruptions._filters import UInt8Array, to_uint8
from polytta.data.corruptions._random import ImageStreams


def gaussian_noise(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Add normal noise."""
    (sigma,) = params
    result = streams.normal(*images.shape[1:])
    result *= np.float32(255 * sigma)
    result += images
    return to_uint8(result)


def speckle_noise(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Add normal noise in proportion to the pixel."""
    (sigma,) = params
    result = streams.normal(*images.shape[1:])
    result *= np.float32(sigma)
    result += np.float32(1)
    result *= images
    return to_uint8(result)


def impulse_noise(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Replace values by black or white, each with half the given probability (to within 2**-16)."""
    (amount,) = params
    half = round(amount / 2 * 2**16)
    draws = streams.uint16(*images.shape[1:])
    result: UInt8Array = images.copy()
    np.putmask(result, draws < half, 0)
    np.putmask(result, draws >= 2**16 - half, 255)
    return result


def shot_noise(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Poisson noise, exact to 32 bits of probability, by inversion of the distribution function."""
    photons = int(params[0])
    guide, thresholds, greys = _poisson_tables(photons)
    draws = streams.uint32(*images.shape[1:]).ravel()
    np.minimum(draws, np.uint32(2**32 - 2), out=draws)
    cell = (draws >> np.uint32(24)).astype(np.intp)
    cell += images.ravel().astype(np.intp) << 8
    position = np.take(guide, cell)
    pending = np.flatnonzero(np.take(thresholds, position) <= draws)
    while pending.size:
        position[pending] += 1
        pending = pending[thresholds[position[pending]] <= draws[pending]]
    result: UInt8Array = np.take(greys, position).reshape(images.shape)
    return result


@lru_cache(maxsize=10)
def _poisson_tables(photons: int) -> tuple[NDArray[np.intp], NDArray[np.uint32], UInt8Array]:
    """Guide, thresholds and grey values of the Poisson law for each of the 256 pixel values.

    Counts from `photons` on all clip to white, so a row needs `photons + 1` entries and no more. `guide`
    gives, for the pixel value and the top 8 bits of the draw, the first entry of the flat table that can be
    the answer.
    """
    rate = np.arange(256) / 255.0 * photons
    mass = np.exp(-rate)
    cumulative = np.ones((256, photons + 1))
    cumulative[:, 0] = mass
    for count in range(1, photons):
        mass = mass * rate / count
        cumulative[:, count] = cumulative[:, count - 1] + mass
    thresholds = np.minimum(np.ceil(cumulative * 2.0**32), 2.0**32 - 1)
    bin_starts = np.arange(256) * 2.0**24
    offsets = np.arange(256) * (photons + 1)
    guide = np.stack([np.searchsorted(row, bin_starts, side="right") for row in thresholds])
    guide = np.minimum(guide, photons) + offsets[:, None]
    greys = (np.minimum(np.arange(photons + 1) / float(photons), 1) * 255).astype(np.uint8)
    return guide.ravel().astype(np.intp), thresholds.ravel().astype(np.uint32), np.tile(greys, 256)
