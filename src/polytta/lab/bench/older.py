"""Records as older versions wrote them: a cell had a field of its own for most options, and one for the rest."""

from collections.abc import Mapping, Sequence
from typing import Any

FORMAT = "polytta-record-1"

_CELL_FIELDS = (
    *("model", "dataset", "corruption", "severity", "scenario", "batch_size", "variant", "seed", "images"),
    "normalisation",
)
_SAME_OPTIONS = ("preset", "particles", "views", "lenses", "lr", "lr_span", "aggregate", "precision")
# One field held the strength of every diversifier, under whatever name it had there.
_STRENGTH = {"svgd": "bandwidth"}
_RENAMED_PINS = {"optimizers": "optimizer", "learning_rates": "lr", "layers": "targets"}
_DROPPED_PINS = ("lr_origin",)


def upgraded(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of a record in ``polytta-record-1`` (0.1.0.dev0), cell and pins in the words of today."""
    pins = dict(stored["pins"])
    if "evidence" in pins:
        pins["aggregate"] = pins.pop("evidence")
    pins["settings"] = _settings_pins(pins["settings"], stored["cell"]["preset"])
    results = {**stored["results"], "last_answers": ()}
    times = {**stored["times"], "processor_seconds": None}
    return {**stored, "cell": _cell(stored["cell"]), "pins": pins, "results": results, "times": times}


def _cell(stored: Mapping[str, Any]) -> dict[str, Any]:
    rest = dict(stored["options"])
    diversity = rest.pop("diversity", {})
    if stored["weight"] is not None:
        diversity = {_STRENGTH.get(stored["diversity"], "weight"): stored["weight"], **diversity}
    settings = {
        "method": _part(stored["method"], rest.pop("method", {})),
        "diversity": _part(stored["diversity"], diversity),
        "optimizer": _optimizer(stored["optimizer"], rest.pop("optimizer", {})),
        **{name: stored[name] for name in _SAME_OPTIONS},
        **rest,
    }
    return {**{name: stored[name] for name in _CELL_FIELDS}, "settings": settings}


def _optimizer(names: str | Sequence[str], settings: Any) -> Any:
    if isinstance(names, str):
        return _part(names, settings)
    each = settings or [{}] * len(names)
    return [_part(name, own) for name, own in zip(names, each, strict=True)]


def _part(name: str, settings: Mapping[str, Any]) -> str | dict[str, Any]:
    return {"name": name, **settings} if settings else name


def _settings_pins(stored: Mapping[str, Any], preset: str) -> dict[str, Any]:
    settings = {_RENAMED_PINS.get(name, name): value for name, value in stored.items() if name not in _DROPPED_PINS}
    return {**settings, "preset": preset, "exclude": None, "aggregate": {"name": stored["aggregate"]}}
