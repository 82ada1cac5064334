"""Waterbirds (Sagawa et al. 2020, arXiv 1911.08731): ``metadata.csv`` and the images it names.

Label 1 is a water bird, place 1 a water background; the group is ``2 * label + place``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Literal

import numpy as np

from polytta.data.datasets.base import FileImages, origin_of, require, require_choice, require_count
from polytta.data.datasets.info import DatasetInfo
from polytta.data.datasets.pathindex import PathIndex
from polytta.data.datasets.roots import Root, dataset_folder
from polytta.errors import DataError

SPLITS = ("train", "val", "test")
OFFICIAL_IMAGES = {"train": 4_795, "val": 1_199, "test": 5_794}
COLUMNS = ("img_filename", "y", "split", "place")
CLASSES = ("landbird", "waterbird")

WATERBIRDS = DatasetInfo(
    "waterbirds",
    "waterbird_complete95_forest2water2",
    ("metadata.csv",),
    "the kohpangwei/group_DRO repository (waterbird_complete95_forest2water2.tar.gz)",
)


def waterbirds(split: Literal["train", "val", "test"] = "test", root: Root = None) -> FileImages:
    """Open one split."""
    require_choice("split", split, SPLITS)
    folder = dataset_folder(root, WATERBIRDS.folder)
    table = require(folder / "metadata.csv", "the table of Waterbirds")
    labels: list[int] = []
    places: list[int] = []

    def names() -> Iterator[str]:
        with table.open(newline="", encoding="utf-8") as lines:
            rows = csv.DictReader(lines)
            missing = [column for column in COLUMNS if column not in (rows.fieldnames or ())]
            if missing:
                raise DataError(f"{table}: got no column {missing[0]}; allowed is a table of {', '.join(COLUMNS)}.")
            for row in rows:
                if int(row["split"]) == SPLITS.index(split):
                    labels.append(int(row["y"]))
                    places.append(int(row["place"]))
                    yield row["img_filename"]

    paths = PathIndex(folder, names())
    origin = origin_of(folder)
    if origin == "official":
        require_count(table, len(paths), OFFICIAL_IMAGES[split], f"{split} images")
    y = np.array(labels, np.int32)
    groups = 2 * y + np.array(places, np.int32)
    return FileImages(f"{WATERBIRDS.name}/{split}", CLASSES, origin, paths, y, groups)
