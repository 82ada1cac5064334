"""A NumPy archive with ``x`` (uint8, N x H x W x 3) and ``y`` (N labels).

Archives written by ``np.savez`` are memory-mapped inside the file. Those of ``np.savez_compressed`` cannot
be and are read whole.
"""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from polytta.data.datasets.base import MAX_CLASSES, ArrayImages, numbered_classes, origin_of, require, require_count
from polytta.errors import DataError

LOCAL_HEADER = 30
MAX_BYTES = 2**33
_MAX_HEADER = 2**16


def npz_images(file: str | os.PathLike[str], classes: tuple[str, ...] | None = None) -> ArrayImages:
    """Open the archive; without ``classes`` the label numbers serve as names."""
    path = require(Path(file).expanduser(), "an npz archive with x and y")
    images, labels = _member(path, "x"), _member(path, "y")
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
        raise DataError(f"{path}: got x as {images.dtype} {images.shape}; allowed is uint8 (N, H, W, 3).")
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or (len(labels) and labels.min() < 0):
        raise DataError(f"{path}: got y as {labels.dtype} {labels.shape}; allowed are N labels from 0.")
    if labels.max(initial=0) >= MAX_CLASSES:
        raise DataError(f"{path}: got the label {labels.max()} in y; allowed are 0 to {MAX_CLASSES - 1}.")
    require_count(path, len(labels), len(images), "labels in y")
    names = classes if classes is not None else numbered_classes(labels)
    return ArrayImages(f"npz/{path.stem}", names, origin_of(path.parent, "own"), images, np.array(labels, np.int32))


def _member(path: Path, key: str) -> NDArray[Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            entry = archive.getinfo(f"{key}.npy")
            stored = entry.compress_type == zipfile.ZIP_STORED
            return _array(path, key, entry) if stored else _whole(archive, path, key, entry)
    except DataError:
        raise
    # What a damaged or a foreign file can go wrong with has no end of names.
    except (
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        OSError,
        ValueError,
        OverflowError,
        EOFError,
        MemoryError,
        struct.error,
    ) as error:
        raise DataError(f"{path}: got no array {key}; allowed is an npz archive with x and y.") from error


def _array(path: Path, key: str, entry: zipfile.ZipInfo) -> NDArray[Any]:
    with path.open("rb") as file:
        file.seek(entry.header_offset)
        name_length, extra_length = struct.unpack("<26x2H", file.read(LOCAL_HEADER))
        file.seek(entry.header_offset + LOCAL_HEADER + name_length + extra_length)
        start = file.tell()
        shape, fortran, dtype, length = _header(path, key, file)
        if not all(shape):
            return np.zeros(shape, dtype)
        return np.memmap(path, dtype, "r", start + length, shape, "F" if fortran else "C")


def _whole(archive: zipfile.ZipFile, path: Path, key: str, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """A compressed array, read only if it is as large as it says: memory is taken by what its header claims."""
    with archive.open(entry) as file:
        shape, _, dtype, length = _header(path, key, file)
    size, held = math.prod(shape) * dtype.itemsize, entry.file_size - length
    if not 0 <= size <= held:
        raise DataError(f"{path}: got {key} of {size:,} bytes, with {held:,} in the archive; allowed is all of it.")
    if size > MAX_BYTES:
        raise DataError(
            f"{path}: got {key} of {size:,} bytes, compressed; allowed are {MAX_BYTES:,}, or np.savez, whose archives "
            "are not read whole."
        )
    with archive.open(entry) as file:
        whole: NDArray[Any] = npy.read_array(file)
    return whole


def _header(path: Path, key: str, file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether columns come first, and type of the array that a file goes on with, and how long that took."""
    # A header may claim any length too.
    head = io.BytesIO(file.read(_MAX_HEADER))
    version = npy.read_magic(head)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read_header(head)
    if dtype.hasobject:
        raise DataError(f"{path}: got {key} as Python objects; allowed are numbers.")
    return shape, fortran, dtype, head.tell()
