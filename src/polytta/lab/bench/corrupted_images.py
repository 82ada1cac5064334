"""Clean images that are corrupted when they are first needed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polytta.data.corruptions import corrupt
from polytta.data.corruptions.writer import CUT, RESIZED
from polytta.data.datasets import FileImages
from polytta.data.datasets.base import Image, Labels, Origin, Sample
from polytta.data.datasets.cut import cut
from polytta.data.datasets.webdataset import ShardImages
from polytta.lab.bench import kept_array

CORRUPTION_SEED = 0
# Up to here images are corrupted as those of CIFAR are, and beyond as those of ImageNet.
_SMALL = 64
# A dataset of more pixels than this is corrupted image by image, again in every cell, and kept nowhere.
_MOST_BYTES = 2**31


class Pixels(Protocol):
    """(N, H, W, 3) images, an array or something that reads what is asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, H, W, 3)."""

    def __getitem__(self, items: Any) -> Image: ...


class CleanImages(Protocol):
    """What can be corrupted."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names in label order."""

    @property
    def images(self) -> Pixels:
        """All of one size."""

    @property
    def labels(self) -> Labels:
        """All labels."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class CutImages:
    """Images in files, cut to one size as published corrupted data are; small ones keep that of the first."""

    files: FileImages | ShardImages

    @property
    def classes(self) -> tuple[str, ...]:
        """Those of the files."""
        return self.files.classes

    @property
    def labels(self) -> Labels:
        """Those of the files."""
        return self.files.labels

    @property
    def images(self) -> "CutImages":
        """Itself: what is asked for is read."""
        return self

    @cached_property
    def size(self) -> int:
        """Height and width of all."""
        first = min(self.files[0][0].shape[:2])
        return CUT if first > _SMALL else first

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, H, W, 3)."""
        return len(self.files), self.size, self.size, 3

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, items: Any) -> Image:
        if np.ndim(items) == 0:
            return self._cut(int(items))
        return np.stack([self._cut(int(item)) for item in items])

    def _cut(self, item: int) -> Image:
        return cut(self.files[item][0], RESIZED if self.size == CUT else self.size, self.size)


@dataclass(eq=False)
class CorruptedImages:
    """A clean dataset under one corruption; ``make`` does the work, for as many images as are asked for."""

    clean: CleanImages
    ids: NDArray[np.integer]
    corruption: str
    severity: int
    cache_file: Path | None
    name: str
    origin: Origin = "generated"
    _images: Image | None = field(default=None, repr=False)
    _ready: NDArray[np.bool_] | None = field(default=None, repr=False)

    @property
    def classes(self) -> tuple[str, ...]:
        """Those of the clean images."""
        return self.clean.classes

    @property
    def labels(self) -> Labels:
        """Those of the clean images."""
        return self.clean.labels

    @property
    def constants(self) -> Any:
        """Severity constants by the size of the images."""
        return "cifar" if self.clean.images.shape[1] <= _SMALL else "imagenet"

    @property
    def fits(self) -> bool:
        """Whether all of them may be held at once."""
        return int(np.prod(self.clean.images.shape, dtype=np.int64)) <= _MOST_BYTES

    def __len__(self) -> int:
        return len(self.clean)

    def __getitem__(self, index: int) -> Sample:
        label = int(self.clean.labels[index])
        if not self.fits:
            return self._corrupted(np.array([index]))[0], label, None
        if self._images is None or self._ready is None or not self._ready[index]:
            self.make(np.array([index]))
        assert self._images is not None
        return np.array(self._images[index]), label, None

    def make(self, items: NDArray[np.int64]) -> None:
        """Corrupts the images at these places, or all when that is more than half of them."""
        if not self.fits:
            return
        if self._images is None or self._ready is None:
            self._images = np.zeros(self.clean.images.shape, np.uint8)
            self._ready = np.zeros(len(self), np.bool_)
        missing = items[~self._ready[items]]
        if not len(missing):
            return
        if 2 * len(items) > len(self):
            self._images = self._cached()
            self._ready[:] = True
        else:
            self._images[missing] = self._corrupted(missing)
            self._ready[missing] = True

    def _corrupted(self, items: NDArray[np.int64]) -> Image:
        return corrupt(
            np.asarray(self.clean.images[items]),
            self.corruption,
            self.severity,
            constants=self.constants,
            ids=self.ids[items],
            seed=CORRUPTION_SEED,
        )

    def _cached(self) -> Image:
        if self.cache_file is None:
            return self._corrupted(np.arange(len(self)))
        self.write()
        images: Image = np.load(self.cache_file, mmap_mode="r")
        return images

    @property
    def is_kept(self) -> bool:
        """Whether the cache file holds all corrupted images, as they were written."""
        return self.cache_file is not None and kept_array.is_whole(self.cache_file)

    def write(self) -> None:
        """Puts all corrupted images into the cache file, if they are not there or not what they were."""
        if self.cache_file is not None and self.fits and not self.is_kept:
            kept_array.write(self.cache_file, self._corrupted(np.arange(len(self))))


def ids_of(files: FileImages | ShardImages, id_of: Callable[[Path], int]) -> NDArray[np.integer]:
    """What makes each image's corruption its own: its name, or its place in shards."""
    if isinstance(files, ShardImages):
        return np.arange(len(files))
    return np.array([id_of(files.paths[number]) for number in range(len(files))], np.int64)
