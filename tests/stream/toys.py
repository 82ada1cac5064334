"""Datasets without files for tests of streams."""

from __future__ import annotations

import numpy as np

from polytta.data.datasets.base import ArrayImages


def toy(name="toy", classes=4, per_class=5, groups=False):
    count = classes * per_class
    images = np.zeros((count, 2, 2, 3), np.uint8)
    images[:, 0, 0, 0] = np.arange(count)
    labels = np.repeat(np.arange(classes, dtype=np.int32), per_class)
    names = tuple(f"class{c}" for c in range(classes))
    return ArrayImages(name, names, "official", images, labels, labels % 2 if groups else None)
