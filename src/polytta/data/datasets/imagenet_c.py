"""ImageNet-C (Hendrycks and Dietterich 2019, arXiv 1903.12261): ``ImageNet-C/fog/5/n01440764/*.JPEG``."""

from __future__ import annotations

from polytta.data.corruption_names import CORRUPTIONS, SEVERITIES
from polytta.data.datasets.base import FileImages, origin_of, require_choice, require_count
from polytta.data.datasets.folders import class_folders, index_class_folders
from polytta.data.datasets.generated import IMAGENET_C as LAYOUT
from polytta.data.datasets.generated import read_generated
from polytta.data.datasets.imagenet_classes import imagenet_wnids, labels_of
from polytta.data.datasets.info import DatasetInfo
from polytta.data.datasets.roots import Root, dataset_folder

OFFICIAL_IMAGES = 50_000

IMAGENET_C = DatasetInfo(
    "imagenet-c",
    "ImageNet-C",
    ("gaussian_noise/5/n01440764",),
    "Zenodo record 2235448 (blur, digital, extra, noise and weather .tar)",
)


def imagenet_c(corruption: str, severity: int = 5, root: Root = None) -> FileImages:
    """Open one corruption at one severity; labels are those of ImageNet-1k."""
    require_choice("corruption", corruption, CORRUPTIONS)
    require_choice("severity", severity, SEVERITIES)
    base = dataset_folder(root, IMAGENET_C.folder)
    generated = read_generated(base)
    if generated is not None and generated.layout == LAYOUT:
        return generated.images(corruption, severity, f"{IMAGENET_C.name}/{corruption}/{severity}")  # type: ignore[return-value]
    folder = base / corruption / str(severity)
    names = class_folders(folder, "one folder per ImageNet class")
    wnids = imagenet_wnids()
    name = f"{IMAGENET_C.name}/{corruption}/{severity}"
    opened = index_class_folders(folder, labels_of(folder, names, wnids), name, wnids, origin_of(base))
    if opened.origin == "official":
        require_count(folder, len(opened), OFFICIAL_IMAGES, "images")
    return opened
