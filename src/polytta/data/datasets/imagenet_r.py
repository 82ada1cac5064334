"""ImageNet-R (Hendrycks et al. 2021, arXiv 2006.16241): ``imagenet-r/n01443537/art_0.jpg``, 200 classes.

Labels count the 200 classes. A model of all 1,000 is scored on ``logits[:, imagenet_r_mask()]``.
"""

from __future__ import annotations

from polytta.data.datasets.base import FileImages, origin_of, require_count
from polytta.data.datasets.folders import class_folders, index_class_folders
from polytta.data.datasets.imagenet_classes import imagenet_r_wnids, imagenet_wnids, labels_of
from polytta.data.datasets.info import DatasetInfo
from polytta.data.datasets.roots import Root, dataset_folder

OFFICIAL_IMAGES = 30_000

IMAGENET_R = DatasetInfo(
    "imagenet-r", "imagenet-r", ("n01443537",), "the hendrycks/imagenet-r repository (imagenet-r.tar)"
)


def imagenet_r(root: Root = None) -> FileImages:
    """Open ImageNet-R with labels 0 to 199."""
    folder = dataset_folder(root, IMAGENET_R.folder)
    names = class_folders(folder, "the 200 class folders of ImageNet-R")
    wnids = imagenet_r_wnids()
    opened = index_class_folders(folder, labels_of(folder, names, wnids), IMAGENET_R.name, wnids, origin_of(folder))
    if opened.origin == "official":
        require_count(folder, len(names), len(wnids), "class folders")
        require_count(folder, len(opened), OFFICIAL_IMAGES, "images")
    return opened


def imagenet_r_mask() -> tuple[int, ...]:
    """ImageNet-1k label of each of the 200 classes, in label order."""
    labels = {wnid: label for label, wnid in enumerate(imagenet_wnids())}
    return tuple(labels[wnid] for wnid in imagenet_r_wnids())
