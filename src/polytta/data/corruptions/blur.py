"""Blur: gaussian, defocus, glass, motion and zoom.

    gaussian_blur  normal kernel; parameters (sigma,)
    defocus_blur   disk kernel, softened by a small normal one; parameters (radius, softening sigma)
    glass_blur     gaussian blur, then every pixel copies a neighbour at most d away, i times over the image,
                   then gaussian blur again; parameters (sigma, d, i)
    motion_blur    one-sided normal streak of 2 r + 1 pixels at an angle from U(-45, 45) degrees;
                   parameters (r, sigma)
    zoom_blur      mean of the image and its centre enlarged by 1, 1 + step, ... below stop;
                   parameters (stop, step)

Against `imagecorruptions-imaug` at equal constants, gaussian and zoom blur are equal bit for bit on
photographs, and so is defocus blur but for one pixel in a million, one grey level off, where OpenCV rounds
its float32 kernel in another last bit. On synthetic images whose blur is exactly a whole grey level without
being flat (a perfect ramp), the last bit of a float64 sum decides and a pixel may differ by one grey level.
The published motion blur is ImageMagick's, which rounds to 8 bits and repeats the border; imagecorruptions
cuts instead of rounding.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from polytta.data.corruptions._constants import Params
from polytta.data.corruptions._filters import (
    UInt8Array,
    centre_zoom_map,
    filter_planes,
    gaussian_blur_uint8,
    motion_blur_float,
    to_planes,
    to_uint8,
)
from polytta.data.corruptions._random import ImageStreams

_SPECTRUM_PIXELS = 2**16
_NEGLIGIBLE_WEIGHT = 1e-12


def gaussian_blur(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Blur with a normal kernel."""
    return gaussian_blur_uint8(images, params[0])


def defocus_blur(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Blur with a soft disk, as a lens out of focus does; borders mirror without repeating the edge pixel."""
    kernel = disk_kernel(*params)
    n, height, width, channels = images.shape
    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(n * channels, height, width)
    if _is_uniform(kernel):
        result = _uniform_mean(planes, kernel)
    else:
        # Few planes at a time, so that their spectra stay in the processor's cache.
        group = max(1, _SPECTRUM_PIXELS // (height * width))
        parts = [_convolve(planes[i : i + group], kernel, params) for i in range(0, len(planes), group)]
        result = np.concatenate(parts)
    result = result.reshape(n, channels, height, width)
    return np.ascontiguousarray(result.transpose(0, 2, 3, 1))


def _is_uniform(kernel: NDArray[np.float32]) -> bool:
    """Whether all weights that matter are the same: a softening sigma of 0.1 changes nothing."""
    weights = kernel[kernel > _NEGLIGIBLE_WEIGHT]
    return bool((weights == weights[0]).all())


def _uniform_mean(planes: UInt8Array, kernel: NDArray[np.float32]) -> UInt8Array:
    """Sum whole numbers under the disk, then look up the grey level: exact, and cheap for a small disk."""
    height, width = planes.shape[1:]
    margin = len(kernel) // 2
    padded = np.pad(planes, ((0, 0), (margin, margin), (margin, margin)), mode="reflect").astype(np.uint16)
    taps = np.argwhere(kernel > _NEGLIGIBLE_WEIGHT)
    total = np.zeros(planes.shape, dtype=np.uint16)
    for down, right in taps:
        total += padded[:, down : down + height, right : right + width]
    table = to_uint8(np.arange(255 * len(taps) + 1) * float(kernel.max()))
    return np.take(table, total)


def _convolve(planes: UInt8Array, kernel: NDArray[np.float32], params: Params) -> UInt8Array:
    """Product of spectra, back to 8 bits."""
    height, width = planes.shape[1:]
    margin = len(kernel) // 2
    bottom, right = margin + height, margin + width
    padded_height, padded_width = _smooth_size(bottom + margin), _smooth_size(right + margin)
    # Beyond the margin the padding is never within reach of the image, so it can stay zero.
    rows = np.zeros((len(planes), height, padded_width))
    rows[..., margin:right] = planes
    rows[..., :margin] = rows[..., 2 * margin : margin : -1]
    rows[..., right : right + margin] = rows[..., right - 2 : right - 2 - margin : -1]
    # Mirroring rows and transforming them commute, so the mirrored ones are transformed once.
    spectrum = np.zeros((len(planes), padded_height, padded_width // 2 + 1), dtype=np.complex128)
    spectrum[:, margin:bottom] = np.fft.rfft(rows)
    spectrum[:, :margin] = spectrum[:, 2 * margin : margin : -1]
    spectrum[:, bottom : bottom + margin] = spectrum[:, bottom - 2 : bottom - 2 - margin : -1]
    spectrum = np.fft.fft(spectrum, axis=1)
    spectrum *= _disk_spectrum(*params, padded_height, padded_width)
    spectrum = np.fft.ifft(spectrum, axis=1)[:, margin:bottom]
    blurred = np.fft.irfft(spectrum, n=padded_width)[..., margin:right]
    # Only the top can be passed, by kernels that sum to more than one.
    return np.minimum(blurred, 255.0).astype(np.uint8)


def glass_blur(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Shuffle pixels locally between two Gaussian blurs, as frosted glass does.

    The published loop walks the image backwards and lets pixel p copy pixel t(p), which has itself copied
    already if it comes earlier in the walk. (It reads as a swap; on NumPy views it is a copy.) The source of
    p is found for all pixels at once: follow t while the target was visited before, by pointer doubling.
    """
    sigma, reach, rounds = params[0], int(params[1]), int(params[2])
    n, height, width, channels = images.shape
    blurred = gaussian_blur_uint8(images, sigma)
    inside = np.zeros((height, width), dtype=bool)
    inside[reach + 1 : height - reach + 1, reach + 1 : width - reach + 1] = True
    span = 2 * reach
    row_shift, column_shift = np.divmod(np.arange(span * span), span)
    shifts = (row_shift - reach) * width + column_shift - reach
    moves = np.tile(inside.ravel(), n)
    here = np.arange(n * height * width, dtype=np.intp)
    source = here
    for _round in range(rounds):
        choice = (streams.uint16(height * width).ravel().astype(np.uint32) * span**2) >> 16
        target = here + np.take(shifts, choice) * moves
        jump = np.where((target > here) & np.take(moves, target), target, here)
        further = np.take(jump, jump)
        while not np.array_equal(further, jump):
            jump, further = further, np.take(further, further)
        source = np.take(source, np.take(target, jump))
    shuffled = blurred.reshape(-1, channels)[source].reshape(images.shape)
    return gaussian_blur_uint8(shuffled, sigma)


def motion_blur(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Smear along a random direction."""
    radius, sigma = int(params[0]), params[1]
    angles = streams.uniform(-45.0, 45.0, 1)[:, 0]
    result = np.empty_like(images)
    for row, (image, angle) in enumerate(zip(images, angles, strict=True)):
        blurred = motion_blur_float(image.astype(np.float32), radius, sigma, float(angle))
        blurred += np.float32(0.5)
        result[row] = to_uint8(blurred)
    return result


def zoom_blur(images: UInt8Array, params: Params, streams: ImageStreams) -> UInt8Array:
    """Average the image with enlargements of its centre."""
    stop, step = params
    factors = np.arange(1, stop, step)
    # The published sum runs in float32 and its rounding decides grey levels in flat patches, so it is
    # repeated.
    original = (to_planes(images) / 255.0).astype(np.float32)
    exact = original.astype(np.float64)
    total = original.copy()
    for factor in factors[1:]:
        height_map = centre_zoom_map(images.shape[1], float(factor))
        width_map = centre_zoom_map(images.shape[2], float(factor))
        total += filter_planes(exact, height_map, width_map).astype(np.float32)
    mean = (original + total) / np.float32(len(factors) + 1)
    grey = (np.clip(mean, 0, 1, out=mean) * np.float32(255)).astype(np.uint8)
    return np.ascontiguousarray(grey.transpose(0, 1, 3, 2))


@lru_cache(maxsize=16)
def disk_kernel(radius: float, softening: float) -> NDArray[np.float32]:
    """Disk of the given radius, normalised, then softened by a 3x3 (radius > 8: 5x5) normal kernel.

    The softening mirrors at the border of its 17x17 (or wider) square, so kernels that touch it, radius 8 and
    more, sum to a little over one and brighten by 1 %: so do the published images. All in float32, as
    published.
    """
    reach = 8 if radius <= 8 else int(radius)
    steps = np.arange(-reach, reach + 1)
    disk = (steps[:, None] ** 2 + steps**2 <= radius**2).astype(np.float32)
    disk /= disk.sum()
    soft_reach = 1 if radius <= 8 else 2
    soft_steps = np.arange(-soft_reach, soft_reach + 1)
    weights = np.exp(-(soft_steps**2) / (2 * softening**2))
    taps = (weights / weights.sum()).astype(np.float32)
    for axis in range(2):
        padded = np.pad(disk, ((0, 0), (soft_reach, soft_reach)), mode="reflect")
        shifted = [padded[:, k : k + len(steps)] for k in range(2 * soft_reach + 1)]
        centre = (shifted[soft_reach], taps[soft_reach])
        pairs = [(shifted[k] + shifted[-1 - k], taps[k]) for k in range(soft_reach - 1, -1, -1)]
        # OpenCV's order along rows, then columns: the last bit of the kernel decides flat patches.
        first, *others = [pairs[0], centre, *pairs[1:]] if axis == 0 else [centre, *pairs]
        softened = first[0] * first[1]
        for values, weight in others:
            softened = (values.astype(np.float64) * weight + softened).astype(np.float32)
        disk = np.ascontiguousarray(softened.T)
    return disk


@lru_cache(maxsize=16)
def _disk_spectrum(radius: float, softening: float, height: int, width: int) -> NDArray[np.float64]:
    kernel = disk_kernel(radius, softening)
    reach = len(kernel) // 2
    centred = np.zeros((height, width))
    centred[: len(kernel), : len(kernel)] = kernel
    # The kernel is symmetric about its centre, so once centred on the origin its spectrum is real.
    return np.ascontiguousarray(np.fft.rfft2(np.roll(centred, (-reach, -reach), (0, 1))).real)


@lru_cache(maxsize=64)
def _smooth_size(size: int) -> int:
    """Smallest size from `size` on with no prime factor above 5, where the Fourier transform is fast."""
    while True:
        rest = size
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return size
        size += 1
