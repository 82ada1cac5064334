"""What the images of a report look like, corrupted as the panels have them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from polytta.data.bundled import cifar10_subset_indices, load_cifar10_subset
from polytta.data.corruption_names import CORRUPTIONS
from polytta.data.corruptions import corrupt
from polytta.errors import PolyttaError
from polytta.lab.bench.data import open_domain
from polytta.lab.pages.bench.panel import Panel
from polytta.lab.pages.bench.short_names import short_name

Pictures = dict[str, NDArray[np.uint8]]
# A red car among the bundled images: both its shape and its colour survive thirty-two pixels.
EXAMPLE = 158
_LARGEST = 160


def own_images(panels: tuple[Panel, ...], places: Mapping[str, str]) -> dict[str, Pictures]:
    """{dataset: one image of it, as every corruption of its panels has it}, for those still where they were."""
    found: dict[str, Pictures] = {}
    for dataset in dict.fromkeys(str(panel.fields["dataset"]) for panel in panels):
        if dataset not in places or not Path(places[dataset]).exists():
            continue
        own = tuple(panel for panel in panels if str(panel.fields["dataset"]) == dataset)
        shown: Pictures = {}
        for name, severity in ((None, None), *_wanted(own)):
            try:
                domain = open_domain(dataset, places[dataset], name, severity)
                image = domain[len(domain) // 2][0]
            except PolyttaError:  # no clean images, or another folder by now
                continue
            shown["clean" if name is None else f"{short_name(name)} {severity}"] = _small(image)
        if shown:
            found[dataset] = shown
    return found


def example_images(panels: tuple[Panel, ...]) -> Pictures:
    """A bundled image, clean and under every corruption and severity the panels have, in the order of the tables."""
    clean = load_cifar10_subset()
    ids = cifar10_subset_indices()[EXAMPLE : EXAMPLE + 1]
    shown = {"clean": clean.images[EXAMPLE]}
    for name, severity in _wanted(panels):
        corrupted = corrupt(clean.images[EXAMPLE : EXAMPLE + 1], name, severity, constants="cifar", ids=ids, seed=0)
        shown[f"{short_name(name)} {severity}"] = corrupted[0]
    return shown


def _wanted(panels: tuple[Panel, ...]) -> list[tuple[Any, Any]]:
    wanted = {
        (name, entry.cell["severity"])
        for panel in panels
        for entry in panel.entries()
        for name in entry.corruptions
        if name in CORRUPTIONS and entry.cell["severity"]
    }
    return sorted(wanted, key=lambda one: (CORRUPTIONS.index(one[0]), one[1]))


def _small(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Small enough for a page that holds many."""
    picture = Image.fromarray(image)
    picture.thumbnail((_LARGEST, _LARGEST))
    return np.asarray(picture)
