"""CIFAR-10-C and CIFAR-100-C (Hendrycks and Dietterich 2019, arXiv 1903.12261), as published on Zenodo.

``CIFAR-10-C/fog.npy`` holds all images five times, severity 1 first; ``labels.npy`` repeats the labels
likewise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytta.data.corruption_names import CORRUPTIONS, SEVERITIES
from polytta.data.datasets.base import (
    MAX_CLASSES,
    ArrayImages,
    numbered_classes,
    origin_of,
    require,
    require_choice,
    require_count,
)
from polytta.data.datasets.cifar_classes import CIFAR10_CLASSES, CIFAR100_CLASSES
from polytta.data.datasets.info import DatasetInfo
from polytta.data.datasets.roots import Root, dataset_folder
from polytta.errors import DataError

OFFICIAL_ROWS = 50_000

CIFAR10_C = DatasetInfo("cifar10-c", "CIFAR-10-C", ("labels.npy", "fog.npy"), "Zenodo record 2535967 (CIFAR-10-C.tar)")
CIFAR100_C = DatasetInfo(
    "cifar100-c", "CIFAR-100-C", ("labels.npy", "fog.npy"), "Zenodo record 3555552 (CIFAR-100-C.tar)"
)


def cifar10_c(corruption: str, severity: int = 5, root: Root = None) -> ArrayImages:
    """Open one corruption of CIFAR-10-C at one severity."""
    return _open(CIFAR10_C, CIFAR10_CLASSES, corruption, severity, root)


def cifar100_c(corruption: str, severity: int = 5, root: Root = None) -> ArrayImages:
    """Open one corruption of CIFAR-100-C at one severity."""
    return _open(CIFAR100_C, CIFAR100_CLASSES, corruption, severity, root)


def _open(info: DatasetInfo, classes: tuple[str, ...], corruption: str, severity: int, root: Root) -> ArrayImages:
    require_choice("corruption", corruption, CORRUPTIONS)
    require_choice("severity", severity, SEVERITIES)
    folder = dataset_folder(root, info.folder)
    name = f"{info.name}/{corruption}/{severity}"
    return severity_of_arrays(folder, corruption, severity, name, classes)


def severity_of_arrays(
    folder: Path, corruption: str, severity: int, name: str, classes: tuple[str, ...] | None
) -> ArrayImages:
    """One fifth of the array of a corruption; without ``classes`` the label numbers serve as names."""
    origin = origin_of(folder)
    labels_path = require(folder / "labels.npy", f"the labels of {folder.name}")
    images_path = require(folder / f"{corruption}.npy", f"the images of {folder.name} under {corruption}")
    labels, images = _array(labels_path), _array(images_path)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or not 0 <= labels.max(initial=0) < MAX_CLASSES:
        raise DataError(f"{labels_path}: got {labels.dtype} {labels.shape}; allowed are labels from 0.")
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:] != (32, 32, 3):
        raise DataError(f"{images_path}: got {images.dtype} {images.shape}; allowed is uint8 (N, 32, 32, 3).")
    if origin == "official":
        require_count(images_path, len(images), OFFICIAL_ROWS, "images")
    require_count(labels_path, len(labels), len(images), "labels")
    if len(images) % len(SEVERITIES):
        raise DataError(
            f"{images_path}: got {len(images):,} images; allowed is a multiple of 5, one part per severity."
        )
    count = len(images) // len(SEVERITIES)
    part = slice((severity - 1) * count, severity * count)
    names = classes if classes is not None else numbered_classes(labels)
    return ArrayImages(name, names, origin, images[part], np.array(labels[part], np.int32))


def _array(path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: got no readable array; allowed is a npy file.") from error
    return array
