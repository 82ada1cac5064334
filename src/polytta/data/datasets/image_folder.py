"""Any folder of class folders: ``root/cat/1.jpg``; labels follow the sorted names, as in torchvision."""

from __future__ import annotations

import os
from pathlib import Path

from polytta.data.datasets.base import FileImages, origin_of
from polytta.data.datasets.folders import class_folders, index_class_folders


def image_folder(folder: str | os.PathLike[str]) -> FileImages:
    """Open the folder."""
    base = Path(folder).expanduser()
    names = class_folders(base, "one folder per class")
    labels = {name: label for label, name in enumerate(names)}
    return index_class_folders(base, labels, f"folder/{base.name}", tuple(names), origin_of(base, "own"))
