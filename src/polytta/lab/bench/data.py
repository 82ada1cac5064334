"""Streams by name. Clean images are corrupted when a stream first needs them, once for all cells of a process.

With a cache folder, whole corrupted datasets are also kept there and shared by all processes as memory-mapped files.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytta.data.bundled import cifar10_subset_indices, load_cifar10_subset
from polytta.data.corruptions import corrupt
from polytta.data.datasets import (
    ArrayImages,
    FileImages,
    ImageDataset,
    cifar10_c,
    cifar100_c,
    colored_mnist,
    image_folder,
    imagenet_c,
    imagenet_r,
    npz_images,
    visda2021,
    waterbirds,
    webdataset,
)
from polytta.data.datasets.base import Image, Labels, Origin, Sample
from polytta.data.datasets.cifar_classes import CIFAR10_CLASSES, CIFAR100_CLASSES
from polytta.data.datasets.webdataset import ShardImages, is_sharded
from polytta.errors import InputError
from polytta.lab.bench import kept_array
from polytta.lab.bench.cell import Cell
from polytta.stream import SCENARIOS, LabelShift, Markov, Scenario, Stream, open_stream

BUNDLED = "bundled"
# Archives by these names hold what the names say.
CLASSES = {"cifar10": CIFAR10_CLASSES, "cifar100": CIFAR100_CLASSES}
CORRUPTION_SEED = 0
# The published number of draws per class is for ImageNet.
PUBLISHED_SHIFT_CLASSES = 1000

# Published with their corruptions, and published as they are.
CORRUPTED: dict[str, Callable[..., ImageDataset]] = {
    "cifar10-c": cifar10_c,
    "cifar100-c": cifar100_c,
    "imagenet-c": imagenet_c,
}
PLAIN: dict[str, Callable[..., ImageDataset]] = {
    "imagenet-r": imagenet_r,
    "visda2021": visda2021,
    "waterbirds": waterbirds,
    "colored-mnist": colored_mnist,
}

# A whole CIFAR test set under 15 corruptions and 4 extra ones fits; in memory that is 30 MB each.
_DOMAINS_KEPT = 20
_STREAMS_KEPT = 64


def split_path(name: str) -> tuple[str, str | None]:
    """NAME and PATH of ``NAME=PATH``."""
    before, equals, path = name.partition("=")
    return before, os.path.expanduser(path) if equals else None


def has_corruptions(dataset: str, path: str | None = None) -> bool:
    """Whether a dataset comes in corruptions and severities, published or made here."""
    return dataset in CORRUPTED or (dataset not in PLAIN and not _come_as_they_are(path))


def _come_as_they_are(path: str | None) -> bool:
    """Whether the images are in files of their own, or in tar shards, and not in an archive of clean ones."""
    return path is not None and (Path(path).is_dir() or is_sharded(path))


def open_cell_stream(cell: Cell, cache_folder: str | None = None) -> Stream:
    """The stream of a cell; images are read, or made, when they are needed."""
    return _stream(
        cell.dataset,
        cell.data_path,
        cell.corruptions,
        cell.severity,
        cell.scenario,
        cell.batch_size,
        cell.images,
        cell.seed,
        cache_folder,
    )


def data_facts(stream: Stream) -> dict[str, Any]:
    """What pins the images themselves; the stream's own facts pin their order."""
    made_here = [domain for domain in stream.datasets if isinstance(domain, CorruptedImages)]
    if made_here:
        return {
            "corrupted_here": True,
            "clean_sha256": _content_hash(made_here[0].clean),
            "constants": made_here[0].constants,
            "corruption_seed": CORRUPTION_SEED,
        }
    arrays = [_content_hash(domain) for domain in stream.datasets if isinstance(domain, ArrayImages)]
    files = [_files_hash(domain) for domain in stream.datasets if isinstance(domain, FileImages | ShardImages)]
    return {"corrupted_here": False, "sha256": arrays, "files_sha256": files}


def prepare(streams: Sequence[Stream]) -> None:
    """Makes the corrupted images that some streams need, all at once per corruption, which is much faster."""
    wanted: dict[int, tuple[CorruptedImages, list[NDArray[np.int64]]]] = {}
    for stream in streams:
        for number, domain in enumerate(stream.datasets):
            if isinstance(domain, CorruptedImages):
                wanted.setdefault(id(domain), (domain, []))[1].append(stream.order.item[stream.order.domain == number])
    for domain, items in wanted.values():
        domain.make(np.unique(np.concatenate(items)))


@dataclass(eq=False)
class CorruptedImages:
    """A clean dataset under one corruption; ``make`` does the work, for as many images as are asked for."""

    clean: ArrayImages
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
        return "cifar" if self.clean.images.shape[1] <= 64 else "imagenet"

    def __len__(self) -> int:
        return len(self.clean)

    def __getitem__(self, index: int) -> Sample:
        if self._images is None or self._ready is None or not self._ready[index]:
            self.make(np.array([index]))
        assert self._images is not None
        return np.array(self._images[index]), int(self.clean.labels[index]), None

    def make(self, items: NDArray[np.int64]) -> None:
        """Corrupts the images at these places, or all when that is more than half of them."""
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
        if self.cache_file is not None and not self.is_kept:
            kept_array.write(self.cache_file, self._corrupted(np.arange(len(self))))


@lru_cache(_STREAMS_KEPT)
def _stream(
    dataset: str,
    path: str | None,
    corruptions: tuple[str, ...],
    severity: int | None,
    scenario: str,
    batch_size: int,
    images: int | None,
    seed: int,
    cache_folder: str | None,
) -> Stream:
    domains = [_domain(dataset, path, name, severity, cache_folder) for name in corruptions or (None,)]
    if images is not None and images > min(map(len, domains)):
        raise InputError(f"images: got {images}; allowed are the {len(domains[0])} of {domains[0].name}.")
    return open_stream(_spec(scenario, domains, batch_size, images, seed), domains)


def _spec(scenario: str, domains: Sequence[ImageDataset], batch_size: int, images: int | None, seed: int) -> Scenario:
    """The scenario with the grid's settings; ``images`` is of each domain whatever the scenario calls its length."""
    if scenario == "label_shift":
        if images is None and len(domains[0].classes) == PUBLISHED_SHIFT_CLASSES:
            return LabelShift(batch_size=batch_size, seed=seed)
        # As many draws as there are images, in equal shares.
        wanted, present = images or len(domains[0]), len(np.unique(domains[0].labels))
        return LabelShift(batch_size=batch_size, seed=seed, draws_per_class=max(1, wanted // present))
    if scenario == "markov":
        return Markov(batch_size=batch_size, seed=seed, length=None if images is None else images * len(domains))
    arguments: dict[str, Any] = {"seed": seed}
    if scenario != "batch1":
        arguments["batch_size"] = batch_size
    if images is not None:
        arguments["limit"] = images * len(domains) if scenario == "mixed" else images
    return SCENARIOS[scenario](**arguments)


@lru_cache(_DOMAINS_KEPT)
def _domain(
    dataset: str, path: str | None, corruption: str | None, severity: int | None, cache_folder: str | None
) -> ImageDataset:
    if dataset in CORRUPTED:
        if corruption is None or severity is None:
            raise InputError(
                f"corruptions: got none for {dataset}, which has no clean images; allowed is at least one."
            )
        return CORRUPTED[dataset](corruption, severity, root=path)
    if dataset in PLAIN:
        return PLAIN[dataset](root=path)
    if path is not None and _come_as_they_are(path):
        if corruption is not None:
            raise InputError(
                f"corruptions: got {corruption!r} for {path}, whose images come as they are; allowed is none."
            )
        return webdataset(path) if is_sharded(path) else image_folder(path)
    clean, ids = _clean(dataset, path)
    if corruption is None or severity is None:
        return clean
    from polytta import __version__

    stem = f"{clean.name.replace('/', '-')}-{_content_hash(clean)[:12]}-{corruption}-{severity}-{__version__}.npy"
    file = Path(cache_folder) / stem if cache_folder is not None else None
    return CorruptedImages(clean, ids, corruption, severity, file, f"{clean.name}/{corruption}/{severity}")


@cache
def _clean(dataset: str, path: str | None) -> tuple[ArrayImages, NDArray[np.integer]]:
    """Clean images and the ids that make each image's corruption its own."""
    if dataset == BUNDLED:
        return load_cifar10_subset(), cifar10_subset_indices()
    if path is None:
        allowed = ", ".join((BUNDLED, *CORRUPTED, *PLAIN, "NAME=FILE.npz", "NAME=FILE.tar", "NAME=FOLDER"))
        raise InputError(f"datasets: got {dataset!r}; allowed are {allowed}.")
    # Records name the dataset, whatever its file is called here.
    clean = replace(npz_images(path, CLASSES.get(dataset)), name=dataset)
    return clean, np.arange(len(clean))


@cache
def _content_hash(images: ArrayImages) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(images.images).data)
    digest.update(images.labels.astype("<i4").tobytes())
    return digest.hexdigest()


@cache
def _files_hash(images: FileImages | ShardImages) -> str:
    """Over names, sizes and labels in their order: reading every file would take longer than many a benchmark."""
    digest = hashlib.sha256(images.labels.astype("<i4").tobytes())
    for number in range(len(images.paths)):
        path = images.paths[number]
        digest.update(f"{path.relative_to(images.paths.folder).as_posix()}\0{path.stat().st_size}\n".encode())
    return digest.hexdigest()
