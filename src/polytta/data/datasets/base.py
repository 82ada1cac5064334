"""What every dataset offers, and the two forms most of them take: an array of images or an index of files.

A dataset is lazy: opening one reads labels and names, an image is read when it is asked for, and nothing is
kept.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from polytta.data.datasets.decode import read_image
from polytta.data.datasets.pathindex import PathIndex
from polytta.errors import DataError, InputError

Image: TypeAlias = NDArray[np.uint8]
Labels: TypeAlias = NDArray[np.int32]
Sample: TypeAlias = tuple[Image, int, int | None]
Origin: TypeAlias = Literal["official", "generated", "own"]

GENERATED_MARKER = "polytta-generated.json"
# A label is a place in a list of names, and a list for any number a file may hold would not fit into memory.
MAX_CLASSES = 100_000


@runtime_checkable
class ImageDataset(Protocol):
    """Images with labels, and groups where the data have them."""

    @property
    def name(self) -> str:
        """Name for records, e.g. ``cifar10-c/fog/5``."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names in label order."""

    @property
    def origin(self) -> Origin:
        """Whether the files are the published ones, were made by this library, or are somebody's own."""

    @property
    def labels(self) -> Labels:
        """All labels, without reading any image."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Sample: ...


@dataclass(frozen=True, eq=False)
class ArrayImages:
    """Images held by one array, usually memory-mapped."""

    name: str
    classes: tuple[str, ...]
    origin: Origin
    images: Image
    labels: Labels
    groups: Labels | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        group = None if self.groups is None else int(self.groups[index])
        return np.array(self.images[index]), int(self.labels[index]), group


@dataclass(frozen=True, eq=False)
class FileImages:
    """Images in files of their own."""

    name: str
    classes: tuple[str, ...]
    origin: Origin
    paths: PathIndex
    labels: Labels
    groups: Labels | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        group = None if self.groups is None else int(self.groups[index])
        return read_image(self.paths[index]), int(self.labels[index]), group

    def without(self, files: Collection[str]) -> FileImages:
        """The same, as if these files were not there."""
        kept = [number for number in range(len(self)) if str(self.paths[number]) not in files]
        if not kept:
            raise DataError(f"{self.paths.folder}: got no image that can be read; allowed is at least one.")
        names = (str(self.paths[number].relative_to(self.paths.folder)) for number in kept)
        groups = None if self.groups is None else self.groups[kept]
        return replace(self, paths=PathIndex(self.paths.folder, names), labels=self.labels[kept], groups=groups)


def origin_of(folder: Path, otherwise: Origin = "official") -> Origin:
    """Generated when this library left its marker in the folder."""
    return "generated" if (folder / GENERATED_MARKER).is_file() else otherwise


def numbered_classes(labels: NDArray[np.integer]) -> tuple[str, ...]:
    """Label numbers as names, for data that name no classes."""
    return tuple(map(str, range(int(labels.max()) + 1 if len(labels) else 0)))


def require(path: Path, expected: str) -> Path:
    """Return the path if it exists, otherwise say what should be there."""
    if not path.exists():
        raise DataError(f"{path}: got no such file or folder; allowed is {expected}.")
    return path


def require_count(path: Path, found: int, expected: int, what: str) -> None:
    """Refuse a dataset that is not complete."""
    if found != expected:
        raise DataError(f"{path}: got {found:,} {what}; allowed is {expected:,}.")


def require_choice(argument: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse an argument outside its few allowed values."""
    if value not in allowed:
        raise InputError(f"{argument}: got {value!r}; allowed are {', '.join(map(str, allowed))}.")
