"""Imports torchvision, timm and open_clip beside a CPU-only torch.

The torchvision wheel of the package index is linked to CUDA. Beside a CPU build of torch its compiled
operators do not load, and its import then dies with "operator torchvision::nms does not exist" while it
registers a fake kernel for an operator that was never declared. timm and open_clip import torchvision and
die with it. Declaring the two operators after exactly that failure lets the import run through. Nothing
here ever calls them, and with a matching build nothing of this happens.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import torch

from polytta.errors import InputError

SYMPTOM = "operator torchvision::nms does not exist"
SCHEMAS = ("nms", "qnms")
SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"

# A library's declarations vanish with the object.
_declared: list[torch.library.Library] = []


def import_zoo(name: str) -> ModuleType:
    """Import a model zoo, or say how to install it."""
    try:
        _import_torchvision()
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (name, "torchvision"):
            raise
        raise InputError(f"model: got one that needs {error.name}; allowed with pip install 'polytta[zoo]'.") from error


def _import_torchvision() -> None:
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if SYMPTOM not in str(error):
            raise
        library = torch.library.Library("torchvision", "DEF")
        for schema in SCHEMAS:
            library.define(f"{schema}{SIGNATURE}")
        _declared.append(library)
        for half_imported in [m for m in sys.modules if m.split(".")[0] == "torchvision"]:
            del sys.modules[half_imported]
        importlib.import_module("torchvision")
