"""``bundled/cifar10_resnet_gn`` and its kin: networks and weights shipped with the package."""

from __future__ import annotations

from collections.abc import Sequence

from polytta.errors import InputError
from polytta.models import from_mini_clip as mini
from polytta.models.bundled import BUNDLED
from polytta.models.preprocessing import Preprocessing
from polytta.models.record import SourceModel
from polytta.models.shipped import load_shipped
from polytta.models.weights import WeightsPath, load_weights


def from_bundled(
    name: str,
    weights: WeightsPath | None,
    num_classes: int | None,
    classes: Sequence[str] | None,
    templates: str | Sequence[str] | None,
) -> SourceModel:
    """Build a bundled network with the shipped weights, or with others of the same shape."""
    if name == mini.NAME:
        if num_classes is not None:
            raise InputError(f"num_classes: got {num_classes} for bundled/{name}; allowed are classes, by name.")
        return mini.from_mini_clip(weights, classes, templates)
    if name not in BUNDLED:
        allowed = ", ".join((*BUNDLED, mini.NAME))
        raise InputError(f"model: got 'bundled/{name}'; allowed after bundled/ are {allowed}.")
    spec = BUNDLED[name]
    module = spec.build(num_classes or spec.num_classes)
    digest = load_weights(module, weights) if weights is not None else load_shipped(name, module)
    preprocessing = Preprocessing(spec.mean, spec.std, spec.image_size, spec.image_size)
    return SourceModel(f"bundled/{name}", module.eval(), preprocessing, num_classes or spec.num_classes, digest)
