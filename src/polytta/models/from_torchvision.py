"""``torchvision/NAME``: a classifier of torchvision with the preprocessing of its first published weights.

For ``resnet50`` those are the V1 weights, the ones test-time adaptation papers mean.
"""

from __future__ import annotations

from polytta.errors import InputError
from polytta.models._torchvision_cpu import import_zoo
from polytta.models.preprocessing import Preprocessing, triple
from polytta.models.record import SourceModel
from polytta.models.weights import WeightsPath, load_weights, missing_weights


def from_torchvision(name: str, weights: WeightsPath | None, num_classes: int | None) -> SourceModel:
    """Build a torchvision model and load its weights from a file."""
    zoo = import_zoo("torchvision").models
    if name not in zoo.list_models(module=zoo):
        raise InputError(
            f"model: got torchvision/{name}; allowed are classifiers that torchvision.models.list_models() lists."
        )
    first = next(iter(zoo.get_model_weights(name)))
    if weights is None:
        file = first.url.rpartition("/")[2]
        raise missing_weights(f"torchvision/{name}", file, f"torchvision's {first}")
    count = num_classes or len(first.meta["categories"])
    module = zoo.get_model(name, weights=None, num_classes=count)
    digest = load_weights(module, weights)
    published = first.transforms()
    preprocessing = Preprocessing(
        triple(published.mean),
        triple(published.std),
        int(published.crop_size[0]),
        int(published.resize_size[0]),
        "bicubic" if published.interpolation.value == "bicubic" else "bilinear",
    )
    return SourceModel(f"torchvision/{name}", module.eval(), preprocessing, count, digest)
