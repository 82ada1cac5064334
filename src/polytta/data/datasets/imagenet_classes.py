"""The 1,000 ImageNet classes by WordNet id in label order, and the 200 of them that ImageNet-R uses.

WordNet ids sorted as text give the labels of every ImageNet classifier (Russakovsky et al. 2015, arXiv
1409.0575).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

from polytta.errors import DataError


@cache
def imagenet_wnids() -> tuple[str, ...]:
    """All 1,000 ids in label order."""
    return _listed("imagenet_wnids.txt")


@cache
def imagenet_r_wnids() -> tuple[str, ...]:
    """The 200 ids of ImageNet-R, sorted."""
    return _listed("imagenet_r_wnids.txt")


def labels_of(folder: Path, names: Iterable[str], wnids: tuple[str, ...]) -> dict[str, int]:
    """Map class folders to labels; a folder that is no class of the list is an error."""
    known = {wnid: label for label, wnid in enumerate(wnids)}
    labels: dict[str, int] = {}
    for name in names:
        if name not in known:
            raise DataError(
                f"{folder}: got a folder {name!r}; allowed are the {len(wnids)} classes by their WordNet ids."
            )
        labels[name] = known[name]
    return labels


def _listed(file: str) -> tuple[str, ...]:
    return tuple(files("polytta.data.datasets").joinpath(file).read_text("ascii").split())
