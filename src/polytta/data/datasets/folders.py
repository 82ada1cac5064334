"""Walks a folder of class folders in the order every framework uses: classes sorted, then files sorted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from polytta.data.datasets.base import FileImages, Origin, require
from polytta.data.datasets.decode import SUFFIXES
from polytta.data.datasets.pathindex import PathIndex
from polytta.errors import DataError


def class_folders(folder: Path, expected: str) -> list[str]:
    """Sorted names of the folders inside a folder."""
    with os.scandir(require(folder, expected)) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir())
    if not names:
        raise DataError(f"{folder}: got no folders; allowed is {expected}.")
    return names


def index_class_folders(
    folder: Path, labels_by_folder: Mapping[str, int], name: str, classes: tuple[str, ...], origin: Origin
) -> FileImages:
    """Index the image files of the given class folders."""
    labels: list[np.ndarray[tuple[int], np.dtype[np.int32]]] = []

    def names() -> Iterator[str]:
        for class_folder, label in labels_by_folder.items():
            with os.scandir(folder / class_folder) as entries:
                files = sorted(e.name for e in entries if e.name.lower().endswith(SUFFIXES))
            labels.append(np.full(len(files), label, np.int32))
            for file in files:
                yield f"{class_folder}/{file}"

    paths = PathIndex(folder, names())
    if not len(paths):
        raise DataError(f"{folder}: got no images; allowed are files ending in {', '.join(SUFFIXES)} in class folders.")
    return FileImages(name, classes, origin, paths, np.concatenate(labels))
