"""WebDataset shards: tar files where ``KEY.jpg`` and ``KEY.cls`` (or ``KEY.json`` with "label") go together.

Opening walks the tar headers once and keeps where each image lies; an image is then read by one seek.
Nothing but the standard library is needed for that, which is why the webdataset package is not.
"""

from __future__ import annotations

import os
import tarfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polytta.data.datasets.base import MAX_CLASSES, Labels, Origin, Sample, origin_of, require
from polytta.data.datasets.decode import MAX_BYTES, SUFFIXES, decode_image
from polytta.data.datasets.pathindex import PathIndex
from polytta.errors import DataError
from polytta.system.json_text import parsed

_MAX_LABEL_BYTES = 2**20
_SAMPLE = "KEY.jpg beside KEY.cls or KEY.json"


@dataclass(frozen=True, eq=False)
class ShardImages:
    """Images at known places inside uncompressed tar files."""

    name: str
    classes: tuple[str, ...]
    origin: Origin
    paths: PathIndex
    shard: NDArray[np.uint32]
    offset: NDArray[np.uint64]
    size: NDArray[np.uint64]
    labels: Labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        path = self.paths[int(self.shard[index])]
        with path.open("rb") as file:
            file.seek(int(self.offset[index]))
            data = file.read(int(self.size[index]))
        return decode_image(data, f"{path}, image {index}"), int(self.labels[index]), None


def is_sharded(source: str | os.PathLike[str]) -> bool:
    """Whether it is a tar file, or a folder with some in it."""
    path = Path(source).expanduser()
    return path.suffix == ".tar" or any(path.glob("*.tar"))


def webdataset(source: str | os.PathLike[str]) -> ShardImages:
    """Open one tar file, or all tar files of a folder in sorted order; the label numbers serve as names."""
    base = require(Path(source).expanduser(), "a tar shard or a folder of them")
    folder = base if base.is_dir() else base.parent
    files = sorted(base.glob("*.tar")) if base.is_dir() else [base]
    if not files:
        raise DataError(f"{base}: got no shards; allowed are files ending in .tar.")
    shard, offset, size, labels = array("I"), array("Q"), array("Q"), array("i")
    for number, path in enumerate(files):
        for place, length, label in _samples(path):
            shard.append(number)
            offset.append(place)
            size.append(length)
            labels.append(label)
    if not labels:
        raise DataError(f"{base}: got no samples; allowed is {_SAMPLE}.")
    return ShardImages(
        f"webdataset/{base.stem}",
        tuple(map(str, range(max(labels) + 1))),
        origin_of(folder, "own"),
        PathIndex(folder, (path.name for path in files)),
        np.frombuffer(shard, np.uint32),
        np.frombuffer(offset, np.uint64),
        np.frombuffer(size, np.uint64),
        np.frombuffer(labels, np.int32),
    )


def _samples(path: Path) -> Iterator[tuple[int, int, int]]:
    """Yield offset, size and label of each image; members of one key lie next to each other by convention."""
    key: str | None = None
    image: tuple[int, int] | None = None
    label: int | None = None
    try:
        with tarfile.open(path, "r:") as tar:
            for member in tar:
                # TarFile remembers every member it has seen, which would grow with the shard.
                tar.members = []  # type: ignore[attr-defined]
                if not member.isfile():
                    continue
                folder, _, base = member.name.rpartition("/")
                stem, _, extension = base.partition(".")
                if f"{folder}/{stem}" != key:
                    if key is not None:
                        yield _complete(path, key, image, label)
                    key, image, label = f"{folder}/{stem}", None, None
                if f".{extension.lower()}" in SUFFIXES:
                    _require_size(path, member, MAX_BYTES)
                    image = (member.offset_data, member.size)
                elif extension in ("cls", "json"):
                    label = _label(tar, member, path)
    except tarfile.ReadError as error:
        raise DataError(f"{path}: got something else; allowed is an uncompressed tar file.") from error
    if key is not None:
        yield _complete(path, key, image, label)


def _label(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> int:
    _require_size(path, member, _MAX_LABEL_BYTES)
    file = tar.extractfile(member)
    text = file.read() if file else b""
    try:
        told = parsed(text)["label"] if member.name.endswith(".json") else text
        if isinstance(told, bool) or (isinstance(told, float) and not told.is_integer()):
            raise ValueError(told)
        label = int(told)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: got {member.name} without a label; allowed is one whole number.") from error
    if not 0 <= label < MAX_CLASSES:
        raise DataError(f"{path}: got {member.name} with label {label}; allowed are 0 to {MAX_CLASSES - 1}.")
    return label


def _require_size(path: Path, member: tarfile.TarInfo, most: int) -> None:
    """Sparse files are as large as they say, whatever the size of the shard."""
    if not 0 <= member.size <= most:
        raise DataError(f"{path}: got {member.name} of {member.size:,} bytes; allowed are {most:,}.")


def _complete(path: Path, key: str, image: tuple[int, int] | None, label: int | None) -> tuple[int, int, int]:
    if image is None or label is None:
        lacking = "an image" if image is None else "a label"
        raise DataError(f"{path}: got {key.lstrip('/')} without {lacking}; allowed is {_SAMPLE}.")
    return (*image, label)
