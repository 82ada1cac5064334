"""The central square of an image, as published corrupted data are cut."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def cut(image: NDArray[np.uint8], resize: int, size: int) -> NDArray[np.uint8]:
    """Resizes the shorter side to ``resize`` and takes the middle ``size`` pixels of both."""
    height, width = image.shape[:2]
    shorter = min(width, height)
    width, height = int(resize * width / shorter), int(resize * height / shorter)
    picture = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return np.array(picture.crop((left, top, left + size, top + size)))
