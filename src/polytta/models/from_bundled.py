"""``bundled/cifar10_resnet_gn`` and its kin: networks and weights shipped with the package."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import as_file, files
from typing import Any

from polytta.errors import DataError, InputError
from polytta.models.bundled import BUNDLED
from polytta.models.preprocessing import Preprocessing
from polytta.models.record import SourceModel
from polytta.models.weights import WeightsPath, load_weights

ASSETS = files("polytta.models").joinpath("assets")


@cache
def bundled_records() -> dict[str, dict[str, Any]]:
    """What ``assets.json`` says about each bundled model: accuracy, hash, recipe; empty without the file."""
    listing = ASSETS.joinpath("assets.json")
    if not listing.is_file():
        return {}
    models: dict[str, dict[str, Any]] = json.loads(listing.read_text("utf-8"))["models"]
    return models


def from_bundled(name: str, weights: WeightsPath | None, num_classes: int | None) -> SourceModel:
    """Build a bundled network with the shipped weights, or with others of the same shape."""
    if name not in BUNDLED:
        raise InputError(f"model: got 'bundled/{name}'; allowed after bundled/ are {', '.join(BUNDLED)}.")
    spec = BUNDLED[name]
    module = spec.build(num_classes or spec.num_classes)
    digest = load_weights(module, weights) if weights is not None else _load_shipped(name, module)
    preprocessing = Preprocessing(spec.mean, spec.std, spec.image_size, spec.image_size)
    return SourceModel(f"bundled/{name}", module.eval(), preprocessing, num_classes or spec.num_classes, digest)


def _load_shipped(name: str, module: Any) -> str:
    record = bundled_records().get(name)
    if record is None or not ASSETS.joinpath(record["file"]).is_file():
        raise DataError(
            f"model: got no {name}.safetensors among the assets; allowed is what scripts/train_sources.py makes."
        )
    with as_file(ASSETS.joinpath(record["file"])) as file:
        digest = load_weights(module, file)
        if digest != record["sha256"]:
            raise DataError(f"{file}: got SHA-256 {digest}; allowed is {record['sha256']}.")
    return digest
