"""Write corrupted copies of a dataset in the layouts of CIFAR-C and ImageNet-C.

    CIFAR-C      DST/<corruption>.npy, uint8 (5 N, 32, 32, 3), severities 1 to 5 one after the other, and
                 DST/labels.npy, the N labels five times over
    ImageNet-C   DST/<corruption>/<severity>/<class>/<image>.JPEG, quality 85, of the image resized to 256 on
                 its shorter side and cut to its central 224 pixels

Every file is written under another name and renamed when complete, so a file that exists is whole. A run that
was killed goes on where it stopped: what exists is never written again. An image that cannot be read costs no
other: it is named at the end.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from tqdm import tqdm

from polytta.data.corruption_names import COMMON_CORRUPTIONS, CORRUPTIONS, SEVERITIES
from polytta.data.corruptions._constants import ConstantSet
from polytta.data.corruptions._dispatch import corrupt
from polytta.data.corruptions._filters import UInt8Array
from polytta.data.corruptions._marker import held_to_settings
from polytta.data.datasets.base import MAX_CLASSES
from polytta.data.datasets.cut import cut
from polytta.data.datasets.decode import SUFFIXES, read_image
from polytta.errors import DataError, InputError
from polytta.system.workers import Worker, run_tasks, usable_cores

_PARTS_NAME = ".polytta-parts"
_IMAGES_PER_JOB = 500
_FILES_PER_JOB = 16
# As ImageNet-C is made: the shorter side, and the middle of it.
RESIZED, CUT = 256, 224


class UnreadableImagesError(DataError):
    """Some images could not be read; all others are written.

    Attributes:
        sentences: one per image, with its path.
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        self.sentences = tuple(sentences)
        super().__init__(
            f"source: got {len(sentences)} images that cannot be read, the first {sentences[0].rstrip('.')}; allowed "
            "is to leave them out, as was done."
        )

    def __reduce__(self) -> tuple[type["UnreadableImagesError"], tuple[tuple[str, ...]]]:
        return type(self), (self.sentences,)


def write_cifar_c(
    images: UInt8Array,
    labels: NDArray[np.integer],
    destination: str | os.PathLike[str],
    *,
    types: Sequence[str] = COMMON_CORRUPTIONS,
    constants: ConstantSet = "cifar",
    seed: int = 0,
    classes: Sequence[str] | None = None,
    workers: int | None = None,
    progress: bool = True,
) -> Path:
    """Write every severity of the given corruptions as CIFAR-C arrays.

    Args:
        images: clean images, uint8 (N, 32, 32, 3); the position of an image is its id.
        labels: N integers from 0.
        destination: folder to write to; made if missing.
        types: corruptions to write, from `CORRUPTIONS`.
        constants: which severity constants to use.
        seed: 0 to 2**32 - 1.
        classes: names in label order, noted for those who read the data.
        workers: processes; all cores by default, 1 runs in this process.
        progress: show a progress bar.

    Returns:
        The destination.
    """
    _check_types(types)
    if len(labels) != len(images):
        raise InputError(f"labels: got {len(labels)}; allowed is one per image, {len(images)}.")
    given = np.asarray(labels)
    if len(given) and not 0 <= given.min() <= given.max() < MAX_CLASSES:
        raise InputError(f"labels: got {given.min()} to {given.max()}; allowed are 0 to {MAX_CLASSES - 1}.")
    # One cheap call rejects wrong images or settings before any file is written.
    corrupt(images[:1], types[0], 1, constants=constants, ids=[0] * len(images[:1]), seed=seed)
    root = Path(destination)
    digest = hashlib.sha256(np.ascontiguousarray(images).data).hexdigest()
    settings = {"layout": "cifar-c", "constants": constants, "seed": seed, "images": len(images)}
    with held_to_settings(root, {**settings, "source_sha256": digest}, types, SEVERITIES, classes):
        # Bytes, as published, wherever they suffice.
        kind = np.uint8 if given.max(initial=0) < 256 else np.int32
        repeated = np.tile(given, len(SEVERITIES)).astype(kind)
        _write_once(root / "labels.npy", lambda stream: np.save(stream, repeated))
        missing = [name for name in types if not (root / f"{name}.npy").exists()]
        jobs = [
            _ArrayJob(
                _part_path(root, name, severity, start),
                images[start : start + _IMAGES_PER_JOB],
                name,
                severity,
                constants,
                start,
                seed,
            )
            for name in missing
            for severity in SEVERITIES
            for start in range(0, len(images), _IMAGES_PER_JOB)
        ]
        unfinished = [job for job in jobs if not job.path.exists()]
        for _ in _run(_write_array_part, unfinished, len(jobs), workers=workers, progress=progress):
            pass
        for name in missing:
            _join_parts(root, name, images)
        shutil.rmtree(root / _PARTS_NAME, ignore_errors=True)
    return root


def write_imagenet_c(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    types: Sequence[str] = COMMON_CORRUPTIONS,
    severities: Sequence[int] = SEVERITIES,
    constants: ConstantSet = "imagenet",
    seed: int = 0,
    resize: bool = True,
    workers: int | None = None,
    progress: bool = True,
) -> Path:
    """Write corrupted copies of an image folder as ImageNet-C does.

    The id of an image is a hash of `<class>/<name without suffix>`, so adding images changes no other.

    Args:
        source: folder `<class>/<image>` of JPEG, PNG or WebP files.
        destination: folder to write to; made if missing.
        types: corruptions to write, from `CORRUPTIONS`.
        severities: any of 1 to 5.
        constants: which severity constants to use.
        seed: 0 to 2**32 - 1.
        resize: resize to 256 and cut to 224 first, as published; switch off for images already cut.
        workers: processes; all cores by default, 1 runs in this process.
        progress: show a progress bar.

    Returns:
        The destination.

    Raises:
        UnreadableImagesError: when all else is written.
    """
    _check_types(types)
    if not severities or not set(severities) <= set(SEVERITIES):
        raise InputError(f"severities: got {list(severities)}; allowed are some of 1 to 5.")
    blank = np.zeros((1, 32, 32, 3), dtype=np.uint8)
    corrupt(blank, types[0], 1, constants=constants, ids=[0], seed=seed)
    root, folder = Path(destination), Path(source)
    files = sorted(path.relative_to(folder) for path in folder.glob("*/*") if path.suffix.lower() in SUFFIXES)
    if not files:
        raise InputError(f"source: got {folder} without images; allowed are images as <class>/<image>.jpg.")
    stems = {path.with_suffix("") for path in files}
    if len(stems) != len(files):
        raise InputError(f"source: got images in {folder} that differ in suffix only; allowed are different names.")
    settings = {"layout": "imagenet-c", "constants": constants, "seed": seed, "resize": resize}
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
    with held_to_settings(root, settings, types, severities, classes):
        jobs = [
            _FolderJob(
                folder,
                root,
                tuple(files[start : start + _FILES_PER_JOB]),
                tuple(types),
                tuple(severities),
                constants,
                seed,
                resize,
            )
            for start in range(0, len(files), _FILES_PER_JOB)
        ]
        done = _run(_write_folder_part, jobs, len(jobs), workers=workers, progress=progress)
        unreadable = [sentence for sentences in done for sentence in sentences]
    if unreadable:
        raise UnreadableImagesError(unreadable)
    return root


def stable_image_id(path: Path) -> int:
    """63-bit id of an image from its class folder and name."""
    key = "/".join(path.with_suffix("").parts[-2:]).encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") >> 1


@dataclass(frozen=True)
class _ArrayJob:
    path: Path
    images: UInt8Array
    name: str
    severity: int
    constants: ConstantSet
    first_id: int
    seed: int


@dataclass(frozen=True)
class _FolderJob:
    source: Path
    destination: Path
    files: tuple[Path, ...]
    types: tuple[str, ...]
    severities: tuple[int, ...]
    constants: ConstantSet
    seed: int
    resize: bool


def _write_array_part(job: _ArrayJob, worker: Worker) -> None:
    ids = np.arange(job.first_id, job.first_id + len(job.images))
    result = corrupt(job.images, job.name, job.severity, constants=job.constants, ids=ids, seed=job.seed)
    _write_once(job.path, lambda stream: np.save(stream, result))


def _write_folder_part(job: _FolderJob, worker: Worker) -> list[str]:
    """Returns a sentence for every image that could not be read."""
    unreadable = []
    for path in job.files:
        targets = {
            (name, severity): job.destination / name / str(severity) / path.with_suffix(".JPEG")
            for name in job.types
            for severity in job.severities
        }
        missing = {key: target for key, target in targets.items() if not target.exists()}
        if not missing:
            continue
        # Reading and resizing costs more than most corruptions, so one reading serves them all.
        try:
            read = read_image(job.source / path)
        except DataError as error:
            unreadable.append(str(error))
            continue
        clean = (cut(read, RESIZED, CUT) if job.resize else read)[None]
        ids = [stable_image_id(path)]
        for (name, severity), target in missing.items():
            result = corrupt(clean, name, severity, constants=job.constants, ids=ids, seed=job.seed)
            save = Image.fromarray(result[0]).save
            _write_once(target, partial(save, format="JPEG", quality=85, optimize=True), sync=False)
    return unreadable


def _part_path(root: Path, name: str, severity: int, start: int) -> Path:
    return root / _PARTS_NAME / f"{name}-{severity}-{start:08d}.npy"


def _join_parts(root: Path, name: str, images: UInt8Array) -> None:
    parts = [
        _part_path(root, name, severity, start)
        for severity in SEVERITIES
        for start in range(0, len(images), _IMAGES_PER_JOB)
    ]
    joined = np.concatenate([np.load(part) for part in parts])
    _write_once(root / f"{name}.npy", lambda stream: np.save(stream, joined))
    for part in parts:
        part.unlink()


def _write_once(path: Path, write: Callable[[IO[bytes]], object], *, sync: bool = True) -> None:
    """Write a file that is either absent or whole; leave it alone if it is there.

    `sync` also holds against a power cut, at milliseconds a file: worth it for arrays, not for single images.
    """
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # The same name every time: what a killed run left behind is overwritten, not collected.
    unfinished = path.with_name(f".{path.name}.tmp")
    try:
        with unfinished.open("wb") as stream:
            write(stream)
            if sync:
                stream.flush()
                os.fsync(stream.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _check_types(types: Sequence[str]) -> None:
    unknown = [name for name in types if name not in CORRUPTIONS]
    if unknown or not types:
        raise InputError(f"types: got {list(types)}; allowed are some of {', '.join(CORRUPTIONS)}.")


def _run(
    work: Callable[[Any, Worker], Any], jobs: Sequence[Any], total: int, *, workers: int | None, progress: bool
) -> Iterator[Any]:
    """Run the jobs on all cores; yields what each returns."""
    count = min(workers or usable_cores(), len(jobs))
    with tqdm(total=total, initial=total - len(jobs), unit="job", disable=not progress) as bar:
        for done in run_tasks(work, jobs, count, preload=__name__):
            yield done.result()
            bar.update()
