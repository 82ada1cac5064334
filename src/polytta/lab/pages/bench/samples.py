"""What the corruptions of a report look like, on one bundled image."""

import numpy as np
from numpy.typing import NDArray

from polytta.data.bundled import cifar10_subset_indices, load_cifar10_subset
from polytta.data.corruption_names import CORRUPTIONS
from polytta.data.corruptions import corrupt
from polytta.lab.pages.bench.panel import Panel
from polytta.lab.pages.bench.short_names import short_name

# A red car among the bundled images: both its shape and its colour survive thirty-two pixels.
EXAMPLE = 158


def sample_images(panels: tuple[Panel, ...]) -> dict[str, NDArray[np.uint8]]:
    """Clean, and under every corruption and severity the panels have, in the order of the tables."""
    wanted = set()
    for panel in panels:
        for entry in panel.entries():
            wanted |= {(name, entry.cell["severity"]) for name in entry.corruptions}
    clean = load_cifar10_subset()
    ids = cifar10_subset_indices()[EXAMPLE : EXAMPLE + 1]
    shown = {"clean": clean.images[EXAMPLE]}
    known = [name for name in CORRUPTIONS if any(name == other for other, _ in wanted)]
    for name in known:
        for severity in sorted(severity for other, severity in wanted if other == name and severity):
            corrupted = corrupt(clean.images[EXAMPLE : EXAMPLE + 1], name, severity, constants="cifar", ids=ids, seed=0)
            shown[f"{short_name(name)} {severity}"] = corrupted[0]
    return shown
