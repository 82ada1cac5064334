"""What ``polytta corrupt`` wrote, read back whatever its folder and its classes are called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from polytta.data.corruption_names import CORRUPTIONS
from polytta.data.datasets.base import GENERATED_MARKER, ArrayImages, FileImages
from polytta.data.datasets.cifar_c import severity_of_arrays
from polytta.data.datasets.folders import class_folders, index_class_folders
from polytta.data.datasets.imagenet_classes import imagenet_wnids
from polytta.errors import DataError
from polytta.system.json_text import parsed

CIFAR_C, IMAGENET_C = "cifar-c", "imagenet-c"


@dataclass(frozen=True)
class Generated:
    """What the marker of a generated folder says.

    Attributes:
        folder: where it lies.
        layout: "cifar-c" or "imagenet-c".
        complete: {corruption: its severities}, those that are whole.
        classes: names in label order where they were known; an image folder has them as folders.
    """

    folder: Path
    layout: str
    complete: dict[str, tuple[int, ...]]
    classes: tuple[str, ...] | None

    @property
    def corruptions(self) -> tuple[str, ...]:
        """Those that are whole, in the order of every table."""
        return tuple(name for name in CORRUPTIONS if name in self.complete)

    def images(self, corruption: str, severity: int, name: str) -> ArrayImages | FileImages:
        """One corruption at one severity."""
        if severity not in self.complete.get(corruption, ()):
            held = ", ".join(f"{one} {' '.join(map(str, self.complete[one]))}" for one in self.corruptions) or "none"
            raise DataError(
                f"{self.folder}: got a wish for {corruption} {severity}; allowed is what `polytta corrupt` has "
                f"finished there ({held})."
            )
        if self.layout == CIFAR_C:
            return severity_of_arrays(self.folder, corruption, severity, name, self.classes)
        folder = self.folder / corruption / str(severity)
        names = class_folders(folder, "one folder per class")
        wnids = imagenet_wnids()
        # Part of ImageNet keeps ImageNet's labels; classes of one's own are numbered as they are sorted.
        classes = wnids if set(names) <= set(wnids) else self.classes or tuple(names)
        labels = {one: label for label, one in enumerate(classes)}
        return index_class_folders(folder, {one: labels[one] for one in names}, name, classes, "generated")


def read_generated(folder: Path) -> Generated | None:
    """The marker of a folder that ``polytta corrupt`` wrote; None for any other folder."""
    marker = folder / GENERATED_MARKER
    if not marker.is_file():
        return None
    try:
        stored = parsed(marker.read_text("utf-8"))
        layout = stored.get("settings", {}).get("layout")
        if layout not in (CIFAR_C, IMAGENET_C):
            return None
        complete = {str(name): tuple(map(int, done)) for name, done in stored["complete"].items()}
        classes = None if stored.get("classes") is None else tuple(map(str, stored["classes"]))
    except (OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{marker}: got no record of generated data; allowed is what `polytta corrupt` wrote."
        ) from error
    return Generated(folder, layout, complete, classes)
