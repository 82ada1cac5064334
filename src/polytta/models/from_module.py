"""``my_module:build``: a model of the user's own.

``build()`` returns a SourceModel, or a network that carries timm's ``pretrained_cfg``: a dict with at least
``input_size`` (3, height, width), ``mean``, ``std`` and ``num_classes``.
"""

from __future__ import annotations

import importlib
from dataclasses import replace

from torch import nn

from polytta.errors import InputError
from polytta.models.preprocessing import Preprocessing, triple
from polytta.models.record import SourceModel, hash_parameters
from polytta.models.weights import WeightsPath, load_weights

NEEDED = ("input_size", "mean", "std", "num_classes")


def from_module(model_id: str, weights: WeightsPath | None) -> SourceModel:
    """Import the module, call the function, load the weights if there are any."""
    module_name, _, function = model_id.partition(":")
    try:
        build = getattr(importlib.import_module(module_name), function)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        raise InputError(
            f"model: got {model_id!r}; allowed are modules that can be imported, and {module_name!r} cannot."
        ) from error
    except AttributeError as error:
        raise InputError(f"model: got {model_id!r}; allowed is a function that {module_name!r} has.") from error
    built = build()
    record = built if isinstance(built, SourceModel) else _record(model_id, built)
    digest = load_weights(record.module, weights) if weights is not None else hash_parameters(record.module)
    record.module.eval()
    return replace(record, id=model_id, weights_sha256=digest)


def _record(model_id: str, built: object) -> SourceModel:
    config = getattr(built, "pretrained_cfg", None)
    if not isinstance(built, nn.Module) or not isinstance(config, dict) or any(k not in config for k in NEEDED):
        raise InputError(
            f"model: got {type(built).__name__} from {model_id}; allowed is a SourceModel, or a torch module whose "
            f"`pretrained_cfg` holds {', '.join(NEEDED)}."
        )
    size = int(config["input_size"][-1])
    preprocessing = Preprocessing(
        triple(config["mean"]),
        triple(config["std"]),
        size,
        int(size / config.get("crop_pct", 1.0)),
        "bicubic" if config.get("interpolation") == "bicubic" else "bilinear",
    )
    return SourceModel(model_id, built, preprocessing, int(config["num_classes"]), "")
