"""MNIST's idx files, plain or gzipped, in ``MNIST`` or, as torchvision has it, ``MNIST/raw``."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polytta.data.datasets.base import require_count
from polytta.data.datasets.info import DatasetInfo
from polytta.data.datasets.roots import Root, dataset_folder
from polytta.errors import DataError

OFFICIAL_IMAGES = 60_000
IMAGES = "train-images-idx3-ubyte"
LABELS = "train-labels-idx1-ubyte"

MNIST = DatasetInfo("colored-mnist", "MNIST", (), f"any MNIST mirror ({IMAGES}.gz and {LABELS}.gz)")


def read_mnist_train(root: Root) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the 60,000 training images and their digits."""
    folder = dataset_folder(root, MNIST.folder)
    images_path = find_idx(folder, IMAGES)
    labels_path = find_idx(folder, LABELS)
    if images_path is None or labels_path is None:
        lacking = LABELS if images_path else IMAGES
        raise DataError(f"{folder / 'raw' / lacking}: got no such file; allowed is it, plain or with .gz.")
    images, labels = read_idx(images_path), read_idx(labels_path)
    require_count(images_path, len(images), OFFICIAL_IMAGES, "images")
    require_count(labels_path, len(labels), OFFICIAL_IMAGES, "labels")
    return images, labels


def find_idx(folder: Path, name: str) -> Path | None:
    """Find an idx file in the places where it may lie."""
    candidates = (folder / part / f"{name}{suffix}" for part in ("raw", "") for suffix in ("", ".gz"))
    return next((path for path in candidates if path.is_file()), None)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an idx file of bytes; a plain one is memory-mapped."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        zeros, kind, dimensions = struct.unpack(">HBB", _exactly(file.read(4), 4, path))
        if zeros or kind != 8:
            raise DataError(f"{path}: got another start than 0x0008; allowed is an idx file of bytes.")
        shape = struct.unpack(f">{dimensions}I", _exactly(file.read(4 * dimensions), 4 * dimensions, path))
        size = int(np.prod(shape))
        if path.suffix == ".gz":
            return np.frombuffer(_exactly(file.read(), size, path), np.uint8).reshape(shape)
    offset = 4 + 4 * dimensions
    _exactly(path.stat().st_size - offset, size, path)
    return np.memmap(path, np.uint8, "r", offset, shape)


def _exactly(found: bytes | int, expected: int, path: Path) -> bytes:
    length = found if isinstance(found, int) else len(found)
    if length != expected:
        raise DataError(f"{path}: got {length:,} bytes, cut short; allowed is {expected:,}.")
    return b"" if isinstance(found, int) else found
