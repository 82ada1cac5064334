"""The images shipped with the package: 2,000 of the CIFAR-10 test set, 200 per class, pixel for pixel.

ORIGIN.md beside this file says where they come from; ``scripts/make_cifar10_subset.py`` made the files.
"""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

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


def cifar10_subset_indices() -> NDArray[np.int32]:
    """Position of each bundled image in the CIFAR-10 test set."""
    table = json.loads(files(__name__).joinpath(TABLE).read_text("ascii"))
    return np.array(table["test_indices"], np.int32)
