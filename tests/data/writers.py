"""Writes small datasets in their official layouts."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from PIL import Image

from polytta.data.datasets.base import GENERATED_MARKER


def write_image(path: Path, value: int, size: int = 8) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((size, size, 3), value, np.uint8)).save(path, "PNG")


def mark_generated(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / GENERATED_MARKER).write_text("{}")


def write_idx(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.astype(np.uint8).tobytes())
