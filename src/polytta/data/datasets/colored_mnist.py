"""ColoredMNIST (Arjovsky et al. 2019, arXiv 1907.02893), coloured on the fly from the MNIST training files.

The label says whether the digit is 5 or more and is flipped with probability 0.25; label 0 is red and label
1 green, and that colour is flipped with a probability which makes it helpful in training and misleading in
the test.

* ``deyo`` (Lee et al. 2024, arXiv 2403.07366): two training environments of 20,000 (colour flips 0.2 and
  0.1), test 20,000 (0.9). Training labels are the flipped ones, **test labels the clean ones**.
* ``ttab`` (Zhao et al. 2023, arXiv 2306.03536): 30,000 training and 10,000 validation images (0.1), test
  20,000 (0.9). Labels are the flipped ones everywhere, so no classifier can pass 75 % by shape: another
  benchmark, not another name.

The group is ``2 * label + colour`` with colour 1 for red.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polytta.data.datasets.base import Image, Labels, Origin, Sample, require_choice
from polytta.data.datasets.idx import read_mnist_train
from polytta.data.datasets.roots import Root

LABEL_FLIP = 0.25
CLASSES = ("0-4", "5-9")


@dataclass(frozen=True)
class Environment:
    """A stretch of the MNIST training set, its colour flip and whether its labels are the clean ones."""

    start: int
    stop: int
    colour_flip: float
    clean_labels: bool


VARIANTS: dict[str, dict[str, Environment]] = {
    "deyo": {
        "train1": Environment(0, 20_000, 0.2, clean_labels=False),
        "train2": Environment(20_000, 40_000, 0.1, clean_labels=False),
        "test": Environment(40_000, 60_000, 0.9, clean_labels=True),
    },
    "ttab": {
        "train": Environment(0, 30_000, 0.1, clean_labels=False),
        "val": Environment(30_000, 40_000, 0.1, clean_labels=False),
        "test": Environment(40_000, 60_000, 0.9, clean_labels=False),
    },
}


@dataclass(frozen=True, eq=False)
class ColoredMNIST:
    """Digits in red or green; 28 x 28 x 3."""

    name: str
    classes: tuple[str, ...]
    origin: Origin
    digits: Image
    red: np.ndarray[tuple[int], np.dtype[np.bool_]]
    labels: Labels
    groups: Labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        digit = self.digits[index]
        image = np.zeros((*digit.shape, 3), np.uint8)
        image[..., 0 if self.red[index] else 1] = digit
        return image, int(self.labels[index]), int(self.groups[index])


def colored_mnist(variant: str = "deyo", split: str = "test", seed: int = 0, root: Root = None) -> ColoredMNIST:
    """Open one environment of one variant; ``seed`` decides the flips."""
    require_choice("variant", variant, tuple(VARIANTS))
    require_choice("split", split, tuple(VARIANTS[variant]))
    environment = VARIANTS[variant][split]
    images, digits = read_mnist_train(root)
    # Two draws per image in file order, as both reference implementations consume their generator.
    draws = np.random.RandomState(seed).uniform(size=(len(digits), 2))
    stretch = slice(environment.start, environment.stop)
    clean = (digits[stretch] >= 5).astype(np.int32)
    noisy = clean ^ (draws[stretch, 0] < LABEL_FLIP)
    red = (noisy == 0) ^ (draws[stretch, 1] < environment.colour_flip)
    labels = clean if environment.clean_labels else noisy
    name = f"colored-mnist-{variant}/{split}/seed{seed}"
    return ColoredMNIST(name, CLASSES, "official", images[stretch], red, labels, (2 * labels + red).astype(np.int32))
