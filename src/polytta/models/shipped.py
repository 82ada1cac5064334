"""Weights shipped with the package, and what is recorded of them."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import as_file, files
from typing import Any

from torch import nn

from polytta.errors import DataError
from polytta.models.weights import load_weights

ASSETS = files("polytta.models").joinpath("assets")


@cache
def bundled_records() -> dict[str, dict[str, Any]]:
    """What ``assets.json`` says about each bundled model: accuracy, hash, recipe; empty without the file."""
    listing = ASSETS.joinpath("assets.json")
    if not listing.is_file():
        return {}
    models: dict[str, dict[str, Any]] = json.loads(listing.read_text("utf-8"))["models"]
    return models


def load_shipped(name: str, module: nn.Module) -> str:
    """Loads a bundled model's weights, after their hash; DataError where they are missing or altered."""
    record = bundled_records().get(name)
    if record is None or not ASSETS.joinpath(record["file"]).is_file():
        raise DataError(
            f"model: got no {name}.safetensors among the assets; allowed is what the scripts that train it make."
        )
    with as_file(ASSETS.joinpath(record["file"])) as file:
        digest = load_weights(module, file)
        if digest != record["sha256"]:
            raise DataError(f"{file}: got SHA-256 {digest}; allowed is {record['sha256']}.")
    return digest
