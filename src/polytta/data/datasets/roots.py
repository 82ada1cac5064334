"""Finds a dataset's folder: inside ``root``, or inside the folder that POLYTTA_DATA names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from polytta.data.datasets.base import GENERATED_MARKER
from polytta.errors import InputError

ENVIRONMENT = "POLYTTA_DATA"

Root: TypeAlias = str | os.PathLike[str] | None


def data_root(root: Root) -> Path:
    """Return the folder that holds the datasets."""
    given = root if root is not None else os.environ.get(ENVIRONMENT)
    if not given:
        raise InputError(f"root: got none, and {ENVIRONMENT} is not set; allowed is a folder with the datasets.")
    return Path(given).expanduser()


def dataset_folder(root: Root, name: str) -> Path:
    """Return ``root/name``, or ``root`` itself where it is the folder of that name or one that was generated."""
    base = data_root(root)
    return base if base.name == name or (base / GENERATED_MARKER).is_file() else base / name
