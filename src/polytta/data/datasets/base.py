"""What every dataset offers, and the two forms most of them take: an array of images or an index of files.

A dataset is lazy: opening one reads labels and names, an image is read when it is asked for, and nothing is
kept.
"""

from __future__ import annotations

from dataclasses import dataclass
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
Origin: TypeAlias = Literal["official", "generated"]

MOST_CLASSES = 1_000_000
"""A label is the number of a class, and every class has a name: a crafted one must not make billions."""
GENERATED_MARKER = "polytta-generated.json"


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
        """Whether the files are the published ones or were made by this library."""

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


def origin_of(folder: Path) -> Origin:
    """Generated when this library left its marker in the folder, official otherwise."""
    return "generated" if (folder / GENERATED_MARKER).is_file() else "official"


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
