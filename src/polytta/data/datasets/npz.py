"""A NumPy archive with ``x`` (uint8, N x H x W x 3) and ``y`` (N labels).

Archives written by ``np.savez`` are memory-mapped inside the file. Those of ``np.savez_compressed`` cannot
be and are read whole.
"""

from __future__ import annotations

import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from polytta.data.datasets.base import MOST_CLASSES, ArrayImages, origin_of, require, require_count
from polytta.errors import DataError

LOCAL_HEADER = 30


def npz_images(file: str | os.PathLike[str], classes: tuple[str, ...] | None = None) -> ArrayImages:
    """Open the archive; without ``classes`` the label numbers serve as names."""
    path = require(Path(file).expanduser(), "an npz archive with x and y")
    images, labels = _member(path, "x"), _member(path, "y")
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
        raise DataError(f"{path}: got x as {images.dtype} {images.shape}; allowed is uint8 (N, H, W, 3).")
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or (len(labels) and labels.min() < 0):
        raise DataError(f"{path}: got y as {labels.dtype} {labels.shape}; allowed are N labels from 0.")
    if len(labels) and labels.max() >= MOST_CLASSES:
        raise DataError(f"{path}: got label {labels.max()}; allowed are labels below {MOST_CLASSES:,}.")
    require_count(path, len(labels), len(images), "labels in y")
    names = classes if classes is not None else tuple(map(str, range(int(labels.max(initial=-1)) + 1)))
    return ArrayImages(f"npz/{path.stem}", names, origin_of(path.parent), images, np.array(labels, np.int32))


def _member(path: Path, key: str) -> NDArray[Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            entry = archive.getinfo(f"{key}.npy")
    except (zipfile.BadZipFile, KeyError) as error:
        raise DataError(f"{path}: got no array {key}; allowed is an npz archive with x and y.") from error
    if entry.compress_type != zipfile.ZIP_STORED:
        with np.load(path) as arrays:
            whole: NDArray[Any] = arrays[key]
        return whole
    with path.open("rb") as file:
        file.seek(entry.header_offset)
        name_length, extra_length = struct.unpack("<26x2H", file.read(LOCAL_HEADER))
        file.seek(entry.header_offset + LOCAL_HEADER + name_length + extra_length)
        version = npy.read_magic(file)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read_header(file)
        if dtype.hasobject:
            raise DataError(f"{path}: got {key} as Python objects; allowed are numbers.")
        if not all(shape):
            return np.zeros(shape, dtype)
        return np.memmap(path, dtype, "r", file.tell(), shape, "F" if fortran else "C")
