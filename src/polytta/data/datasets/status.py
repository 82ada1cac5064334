"""Says which datasets lie under the data folder, and where to get the others. Nothing is ever downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from polytta.data.datasets import idx
from polytta.data.datasets.base import Origin, origin_of
from polytta.data.datasets.cifar_c import CIFAR10_C, CIFAR100_C
from polytta.data.datasets.imagenet_c import IMAGENET_C
from polytta.data.datasets.imagenet_r import IMAGENET_R
from polytta.data.datasets.info import DatasetInfo
from polytta.data.datasets.roots import Root, dataset_folder
from polytta.data.datasets.visda2021 import VISDA2021
from polytta.data.datasets.waterbirds import WATERBIRDS

DATASETS: tuple[DatasetInfo, ...] = (
    IMAGENET_C,
    CIFAR10_C,
    CIFAR100_C,
    idx.MNIST,
    WATERBIRDS,
    IMAGENET_R,
    VISDA2021,
)


@dataclass(frozen=True)
class DatasetStatus:
    """One line of the status list."""

    name: str
    present: bool
    path: Path
    origin: Origin | None
    source: str


def status(root: Root = None) -> tuple[DatasetStatus, ...]:
    """Look for every dataset with a layout of its own."""
    return tuple(_look(info, dataset_folder(root, info.folder)) for info in DATASETS)


def _look(info: DatasetInfo, folder: Path) -> DatasetStatus:
    if info is idx.MNIST:
        present = all(idx.find_idx(folder, name) for name in (idx.IMAGES, idx.LABELS))
    else:
        present = all((folder / probe).exists() for probe in info.probes)
    return DatasetStatus(info.name, present, folder, origin_of(folder) if present else None, info.source)
