"""The one entry point: check the arguments, split the batch, call the corruption."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from polytta.data.corruption_names import CORRUPTIONS, SEVERITIES
from polytta.data.corruptions import blur, digital, noise, spatter, weather
from polytta.data.corruptions._constants import CONSTANT_SETS, ConstantSet, Params
from polytta.data.corruptions._filters import UInt8Array
from polytta.data.corruptions._random import MAX_IMAGE_ID, MAX_SEED, ImageStreams
from polytta.errors import InputError

MIN_SIDE = 32
# About one 224-pixel image or 64 CIFAR images: small enough for the second-level cache, large enough to hide
# calls.
_PIXELS_PER_PASS = 2**16

_FUNCTIONS: dict[str, Callable[[UInt8Array, Params, ImageStreams], UInt8Array]] = {
    "gaussian_noise": noise.gaussian_noise,
    "shot_noise": noise.shot_noise,
    "impulse_noise": noise.impulse_noise,
    "defocus_blur": blur.defocus_blur,
    "glass_blur": blur.glass_blur,
    "motion_blur": blur.motion_blur,
    "zoom_blur": blur.zoom_blur,
    "snow": weather.snow,
    "frost": weather.frost,
    "fog": weather.fog,
    "brightness": digital.brightness,
    "contrast": digital.contrast,
    "elastic_transform": digital.elastic_transform,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
    "speckle_noise": noise.speckle_noise,
    "gaussian_blur": blur.gaussian_blur,
    "spatter": spatter.spatter,
    "saturate": digital.saturate,
}


def corrupt(
    images: UInt8Array,
    name: str,
    severity: int,
    *,
    constants: ConstantSet = "imagenet",
    ids: Sequence[int] | NDArray[np.integer],
    seed: int = 0,
) -> UInt8Array:
    """Corrupt a batch of images.

    The result for an image depends on its pixels, its id, the corruption, the severity, the constant set and
    the seed, and on nothing else: not on the batch it comes in nor on its place there.

    Args:
        images: uint8 array of shape (N, H, W, 3), height and width at least 32.
        name: one of `CORRUPTIONS`.
        severity: 1 (mild) to 5 (harsh).
        constants: `"imagenet"` for the ImageNet-C constants (224 pixels), `"cifar"` for those of CIFAR-C (32 pixels).
        ids: one integer per image, 0 to 2**63 - 1, that names the image in its dataset.
        seed: 0 to 2**32 - 1.

    Returns:
        A new uint8 array of the same shape.

    Raises:
        InputError: an argument is not as above.
    """
    _check_images(images)
    if name not in CORRUPTIONS:
        raise InputError(f"name: got {name!r}; allowed are {', '.join(CORRUPTIONS)}.")
    if isinstance(severity, bool) or severity not in SEVERITIES:
        raise InputError(f"severity: got {severity!r}; allowed is a whole number from 1 to 5.")
    if constants not in CONSTANT_SETS:
        raise InputError(f"constants: got {constants!r}; allowed are 'imagenet' and 'cifar'.")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed <= MAX_SEED:
        raise InputError(f"seed: got {seed!r}; allowed is a whole number from 0 to {MAX_SEED}.")
    keys = _check_ids(ids, len(images))
    params = CONSTANT_SETS[constants][name][severity - 1]
    result = np.empty_like(images, order="C")
    images_per_pass = max(1, _PIXELS_PER_PASS // (images.shape[1] * images.shape[2]))
    for start in range(0, len(images), images_per_pass):
        part = slice(start, start + images_per_pass)
        streams = ImageStreams(keys[part], corruption=CORRUPTIONS.index(name), severity=int(severity), seed=int(seed))
        result[part] = _FUNCTIONS[name](np.ascontiguousarray(images[part]), params, streams)
    return result


def _check_images(images: object) -> None:
    if not isinstance(images, np.ndarray):
        raise InputError(f"images: got {type(images).__name__}; allowed is a NumPy array.")
    if images.dtype != np.uint8:
        raise InputError(f"images: got {images.dtype}; allowed is uint8.")
    if images.ndim != 4 or images.shape[3] != 3:
        raise InputError(f"images: got shape {images.shape}; allowed is (N, H, W, 3).")
    if min(images.shape[1:3]) < MIN_SIDE:
        raise InputError(f"images: got shape {images.shape}; allowed is at least {MIN_SIDE} pixels high and wide.")


def _check_ids(ids: Sequence[int] | NDArray[np.integer], count: int) -> NDArray[np.uint64]:
    keys = np.asarray(ids) if len(ids) else np.empty(0, dtype=np.int64)
    if keys.dtype.kind not in "iu":
        raise InputError(f"ids: got {keys.dtype}; allowed are whole numbers.")
    if keys.shape != (count,):
        raise InputError(f"ids: got shape {keys.shape}; allowed is one entry per image, ({count},).")
    if count and (int(keys.min()) < 0 or int(keys.max()) > MAX_IMAGE_ID):
        raise InputError(f"ids: got {int(keys.min())} to {int(keys.max())}; allowed are 0 to {MAX_IMAGE_ID}.")
    return keys.astype(np.uint64)
