"""Reads one image file into uint8 RGB: few formats and a size limit, since files may come from strangers."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from polytta.errors import DataError

FORMATS = ("JPEG", "PNG", "WEBP")
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
MAX_PIXELS = 64_000_000
# What so many pixels take without any compression, and some more.
MAX_BYTES = 2**28
# An image of one row of pixels would be enormous by the time its shorter side is as long as a model wants it.
MAX_RATIO = 100


class UnreadableImageError(DataError):
    """One image of a dataset is broken; the others may be well."""


def read_image(path: Path) -> NDArray[np.uint8]:
    """Read an image file as height x width x 3."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableImageError(
            f"{path}: got nothing to read ({error.strerror}); allowed is an image file."
        ) from error
    return decode_image(data, str(path))


def decode_image(data: bytes, where: str) -> NDArray[np.uint8]:
    """Decode an encoded image; ``where`` is what an error calls it."""
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise UnreadableImageError(
                    f"{where}: got {image.width} x {image.height} pixels; allowed are {MAX_PIXELS:,} in all."
                )
            check_ratio(image.width, image.height, where)
            return np.asarray(image.convert("RGB"))
    except (
        UnidentifiedImageError,
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,
        OSError,
        SyntaxError,
        ValueError,
    ) as error:
        if isinstance(error, DataError):
            raise
        raise UnreadableImageError(f"{where}: got no readable image; allowed are {', '.join(FORMATS)}.") from error


def check_ratio(width: int, height: int, where: str) -> None:
    """Refuses an image so narrow that resizing its shorter side would fill the memory."""
    if max(width, height) > MAX_RATIO * min(width, height):
        raise UnreadableImageError(
            f"{where}: got {width} x {height} pixels; allowed is a longer side of {MAX_RATIO} times the shorter."
        )
