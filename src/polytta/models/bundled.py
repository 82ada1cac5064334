"""The three source classifiers this project trains on CIFAR-10 and ships, and how they see images.

``scripts/train_sources.py`` makes their weights; ``assets/assets.json`` records each one's accuracy, hash and
recipe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from polytta.models.small_resnet import cifar10_resnet_bn, cifar10_resnet_gn
from polytta.models.small_vit import cifar10_vit_ln

CIFAR10_MEAN = (0.4914, 0.4822, 0.4465)
CIFAR10_STD = (0.2470, 0.2435, 0.2616)


@dataclass(frozen=True)
class BundledModel:
    """How one shipped network is built and which normalisation it was trained under."""

    name: str
    build: Callable[[int], nn.Module]
    mean: tuple[float, float, float] = CIFAR10_MEAN
    std: tuple[float, float, float] = CIFAR10_STD
    image_size: int = 32
    num_classes: int = 10


BUNDLED: dict[str, BundledModel] = {
    spec.name: spec
    for spec in (
        BundledModel("cifar10_resnet_gn", cifar10_resnet_gn),
        BundledModel("cifar10_vit_ln", cifar10_vit_ln),
        BundledModel("cifar10_resnet_bn", cifar10_resnet_bn),
    )
}
