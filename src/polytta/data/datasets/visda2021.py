"""VisDA-2021 (arXiv 2107.11011), validation images: ``visda21/val_data/imagenet_c_and_r/n01440764/*``.

Only the part drawn from ImageNet-C and ImageNet-R is read, with the labels of ImageNet-1k. ObjectNet and
ImageNet-O, which lie beside it, are left out as SAR did: their classes are not all classes of the source
model.
"""

from __future__ import annotations

from polytta.data.datasets.base import FileImages, origin_of
from polytta.data.datasets.folders import class_folders, index_class_folders
from polytta.data.datasets.imagenet_classes import imagenet_wnids, labels_of
from polytta.data.datasets.info import DatasetInfo
from polytta.data.datasets.roots import Root, dataset_folder

PART = "val_data/imagenet_c_and_r"

VISDA2021 = DatasetInfo(
    "visda2021", "visda21", (PART,), "the VisionLearningGroup/visda21-dev repository (val_data.zip)"
)


def visda2021(root: Root = None) -> FileImages:
    """Open the ImageNet-C and ImageNet-R part of the validation set."""
    base = dataset_folder(root, VISDA2021.folder)
    folder = base / PART
    names = class_folders(folder, "one folder per ImageNet class")
    wnids = imagenet_wnids()
    return index_class_folders(folder, labels_of(folder, names, wnids), VISDA2021.name, wnids, origin_of(base))
