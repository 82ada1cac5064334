"""Streams by name. Clean images are corrupted when a stream first needs them, once for all cells of a process.

With a cache folder, whole corrupted datasets are also kept there and shared by all processes as memory-mapped files.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytta.data.bundled import cifar10_subset_indices, load_cifar10_subset
from polytta.data.corruption_names import COMMON_CORRUPTIONS
from polytta.data.corruptions.writer import stable_image_id
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
    read_generated,
    visda2021,
    waterbirds,
    webdataset,
)
from polytta.data.datasets.cifar_classes import CIFAR10_CLASSES, CIFAR100_CLASSES
from polytta.data.datasets.webdataset import ShardImages, is_sharded
from polytta.errors import InputError
from polytta.lab.bench.cell import Cell
from polytta.lab.bench.corrupted_images import (
    CORRUPTION_SEED,
    CleanImages,
    CorruptedImages,
    CutImages,
    ids_of,
)
from polytta.stream import SCENARIOS, LabelShift, Markov, Scenario, Stream, open_stream

BUNDLED = "bundled"
CLEAN = "clean"
# Archives by these names hold what the names say.
CLASSES = {"cifar10": CIFAR10_CLASSES, "cifar100": CIFAR100_CLASSES}
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


def split_dataset(name: str) -> tuple[str, str | None]:
    """NAME and PATH of ``NAME=PATH``, and of a path alone, which is named after its file."""
    before, path = split_path(name)
    if path is None and before not in (BUNDLED, *CORRUPTED, *PLAIN):
        place = Path(before).expanduser()
        if place.exists():
            return place.resolve().stem if place.is_file() else place.resolve().name, str(place)
    return before, path


def default_corruptions(dataset: str, path: str | None = None) -> tuple[str, ...]:
    """What is run where nobody says: all that `polytta corrupt` wrote, photographs as they are, the common fifteen."""
    if dataset in PLAIN:
        return (CLEAN,)
    generated = None if path is None else read_generated(Path(path))
    if generated is not None:
        return generated.corruptions
    as_they_are = path is not None and dataset not in CORRUPTED and _is_files(path)
    return (CLEAN,) if as_they_are else COMMON_CORRUPTIONS


def _is_files(path: str) -> bool:
    """Whether the images are in files of their own, or in tar shards, and not in an archive."""
    return Path(path).is_dir() or is_sharded(path)


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
        cell.left_out,
    )


def open_domain(dataset: str, path: str | None, corruption: str | None, severity: int | None) -> ImageDataset:
    """The images of one dataset under one corruption, or as they are."""
    return _domain(dataset, path, corruption, severity, None)


def data_facts(stream: Stream) -> dict[str, Any]:
    """What pins the images themselves; the stream's own facts pin their order."""
    made_here = [domain for domain in stream.datasets if isinstance(domain, CorruptedImages)]
    if made_here:
        return {
            "corrupted_here": True,
            "clean_sha256": _clean_hash(made_here[0].clean),
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
    left_out: tuple[str, ...],
) -> Stream:
    domains = [_domain(dataset, path, name, severity, cache_folder, left_out) for name in corruptions or (None,)]
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
    dataset: str,
    path: str | None,
    corruption: str | None,
    severity: int | None,
    cache_folder: str | None,
    left_out: tuple[str, ...] = (),
) -> ImageDataset:
    if dataset in CORRUPTED:
        if corruption is None or severity is None:
            raise InputError(
                f"corruptions: got none for {dataset}, which has no clean images; allowed is at least one."
            )
        return CORRUPTED[dataset](corruption, severity, root=path)
    if dataset in PLAIN:
        return PLAIN[dataset](root=path)
    generated = None if path is None else read_generated(Path(path))
    if generated is not None:
        if corruption is None or severity is None:
            raise InputError(
                f"corruptions: got clean for {path}, which holds no clean images; allowed is what it holds."
            )
        images = generated.images(corruption, severity, f"{dataset}/{corruption}/{severity}")
        return _readable(images, left_out) if isinstance(images, FileImages) else images
    clean, ids = _clean(dataset, path, left_out)
    if corruption is None or severity is None:
        return clean.files if isinstance(clean, CutImages) else clean
    from polytta import __version__

    name = clean.name if isinstance(clean, ArrayImages) else dataset
    stem = f"{name.replace('/', '-')}-{_clean_hash(clean)[:12]}-{corruption}-{severity}-{__version__}.npy"
    file = Path(cache_folder) / stem if cache_folder is not None else None
    return CorruptedImages(clean, ids, corruption, severity, file, f"{name}/{corruption}/{severity}")


@cache
def _clean(
    dataset: str, path: str | None, left_out: tuple[str, ...]
) -> tuple[ArrayImages | CutImages, NDArray[np.integer]]:
    """Clean images and the ids that make each image's corruption its own."""
    if dataset == BUNDLED:
        return load_cifar10_subset(), cifar10_subset_indices()
    if path is None:
        allowed = ", ".join((BUNDLED, *CORRUPTED, *PLAIN, "a folder, an npz or a tar file", "NAME=PATH"))
        raise InputError(f"datasets: got {dataset!r}, where nothing lies; allowed are {allowed}.")
    if _is_files(path):
        files = webdataset(path) if is_sharded(path) else _readable(image_folder(path), left_out)
        return CutImages(files), ids_of(files, stable_image_id)
    # Records name the dataset, whatever its file is called here.
    clean = replace(npz_images(path, CLASSES.get(dataset)), name=dataset)
    return clean, np.arange(len(clean))


def _readable(images: FileImages, left_out: tuple[str, ...]) -> FileImages:
    return images.without(frozenset(left_out)) if left_out else images


def _clean_hash(clean: CleanImages) -> str:
    if isinstance(clean, CutImages):
        return _files_hash(clean.files)
    assert isinstance(clean, ArrayImages)
    return _content_hash(clean)


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
