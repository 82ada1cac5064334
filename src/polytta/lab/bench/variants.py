"""Rows of a table: options of ``polytta.adapt`` under a label, as plain values a file can hold.

A part is its name, ``module:Class``, or a table with ``name`` and any of its own settings:
``diversity = {name = "grad", weight = 0.1, scale = "literal"}``.
"""

from collections.abc import Mapping
from typing import Any

from torch import nn

from polytta.errors import ConfigError
from polytta.lab.bench.cell import OPTIONS
from polytta.lab.bench.clip_variants import CLIP_VARIANTS
from polytta.lab.bench.record import canonical_json
from polytta.roles.registry import as_tuples
from polytta.settings import Settings, resolve

RowSettings = Mapping[str, Any]

VARIANTS: dict[str, RowSettings] = {
    "source": {"method": "source", "particles": 1},
    "norm": {"method": "norm", "particles": 1},
    "tent": {"method": "tent", "particles": 1},
    "eata": {"method": "eata", "particles": 1},
    "sar": {"method": "sar", "particles": 1},
    "deyo": {"method": "deyo", "particles": 1},
    "memo": {"method": "memo", "particles": 1},
    # As their public code moves; single images are collected, since ROID learns nothing from one.
    "roid": {"method": {"name": "roid", "window": 16}, "particles": 1, "optimizer": {"name": "sgd", "nesterov": True}},
    "rdumb": {"method": "rdumb", "particles": 1, "optimizer": {"name": "sgd", "nesterov": True}},
    "naive": {"method": "deyo"},
    "kl": {"method": "deyo", "diversity": "kl"},
    "svgd": {"method": "deyo", "diversity": "svgd"},
    "grad": {"method": "deyo", "diversity": "grad"},
    "grad_mixed": {"method": "deyo", "diversity": "grad", "optimizer": ("sgd", "adam", "adamw")},
    "grad_flips": {"method": "deyo", "diversity": "grad", "views": "flips"},
    # Plain test-time augmentation.
    "tta": {
        "method": "source",
        "particles": 2,
        "lenses": ("unchanged", "horizontal_flip"),
        "aggregate": "probs",
    },
    "source_mirror": {"method": "source", "particles": 1, "views": "mirror"},
    "source_lenses": {"method": "source", "particles": 5, "lenses": "optics", "aggregate": "evidence"},
    "lenses": {"method": "deyo", "particles": 5, "lenses": "optics", "aggregate": "evidence"},
    # Exactly what `polytta.adapt(model)` is, its guard included.
    "default": {"guard": "default"},
    "looking": {"preset": "recommended", "pace": 0.0},
    **CLIP_VARIANTS,
}


def checked(label: str, row: RowSettings) -> dict[str, Any]:
    """A row as a cell holds it; ConfigError in a sentence that names the row when anything in it is not allowed."""
    where = f"variant {label!r}"
    wrong = [name for name in row if name not in OPTIONS]
    if wrong:
        raise ConfigError(f"{where}: got {wrong[0]!r}; allowed are {', '.join(sorted(OPTIONS))}.")
    settings: dict[str, Any] = as_tuples(row)
    try:
        canonical_json(settings)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{where}: got {dict(row)}; allowed are names, finite numbers and tables of these."
        ) from error
    try:
        # Which layers and templates there are depends on the model; all else is better found wrong now than after an
        # hour.
        of_model = {"targets": None, "exclude": None, "prompts": "mean"}
        resolve(Settings.of({**settings, **of_model}, where), nn.Sequential(nn.LayerNorm(1)))
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    return settings
