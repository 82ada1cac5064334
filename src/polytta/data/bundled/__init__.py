"""The images shipped with the package: 2,000 of the CIFAR-10 test set, 200 per class, pixel for pixel.

ORIGIN.md beside this file says where they come from; ``scripts/make_cifar10_subset.py`` made the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.resources import files

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polytta.data.corruptions import corrupt
from polytta.data.datasets.base import ArrayImages
from polytta.data.datasets.cifar_classes import CIFAR10_CLASSES
from polytta.data.datasets.decode import decode_image

MOSAIC = "cifar10_test_2000.webp"
TABLE = "cifar10_test_2000.json"
ROWS, COLUMNS = 40, 50


def load_cifar10_subset() -> ArrayImages:
    """Open the bundled images in the order of the CIFAR-10 test set."""
    folder = files(__name__)
    table = json.loads(folder.joinpath(TABLE).read_text("ascii"))
    mosaic = decode_image(folder.joinpath(MOSAIC).read_bytes(), MOSAIC)
    images = mosaic.reshape(ROWS, 32, COLUMNS, 32, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 32, 32, 3)
    return ArrayImages(table["name"], CIFAR10_CLASSES, "official", images, np.array(table["labels"], np.int32))


def example_batches(
    preprocessing: Callable[[list[NDArray[np.uint8]]], Tensor],
    *,
    corruption: str | None = "frost",
    severity: int = 5,
    images: int = 64,
    batch_size: int = 16,
    seed: int = 0,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of bundled images, corrupted, with their labels: something to try a model on.

    Args:
        preprocessing: makes the model's input of uint8 images, such as ``SourceModel.preprocessing``.
        corruption: one of ``polytta.data.corruptions.CORRUPTIONS``, or None for the images as they are.
        severity: 1 to 5.
        images: how many, up to 2,000.
        batch_size: images per batch.
        seed: of which images, and of their order.
    """
    clean, ids = load_cifar10_subset(), cifar10_subset_indices()
    chosen = np.random.default_rng(seed).permutation(len(clean))[:images]
    for start in range(0, len(chosen), batch_size):
        items = chosen[start : start + batch_size]
        pixels = clean.images[items]
        if corruption is not None:
            pixels = corrupt(pixels, corruption, severity, constants="cifar", ids=ids[items])
        yield preprocessing(list(pixels)), torch.as_tensor(clean.labels[items], dtype=torch.long)


def cifar10_subset_indices() -> NDArray[np.int32]:
    """Position of each bundled image in the CIFAR-10 test set."""
    table = json.loads(files(__name__).joinpath(TABLE).read_text("ascii"))
    return np.array(table["test_indices"], np.int32)
