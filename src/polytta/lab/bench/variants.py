"""Rows of a table: keyword arguments of ``polytta.adapt`` under a label, as plain values a file can hold.

A method, diversifier or optimizer is its name, or a table with ``name`` and any of its own settings:
``diversity = {name = "grad", weight = 0.1, scale = "literal"}``.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from polytta.api import adapt
from polytta.diversity import DIVERSIFIERS
from polytta.errors import ConfigError
from polytta.lab.bench.cell import Cell, tupled
from polytta.methods import METHODS, PRESETS
from polytta.optim import OPTIMIZERS

Arguments = Mapping[str, Any]

DEFAULT_PARTICLES = 3

VARIANTS: dict[str, Arguments] = {
    "source": {"method": "source", "particles": 1},
    "norm": {"method": "norm", "particles": 1},
    "tent": {"method": "tent", "particles": 1},
    "eata": {"method": "eata", "particles": 1},
    "sar": {"method": "sar", "particles": 1},
    "deyo": {"method": "deyo", "particles": 1},
    "naive": {"method": "deyo"},
    "kl": {"method": "deyo", "diversity": "kl"},
    "svgd": {"method": "deyo", "diversity": "svgd"},
    "grad": {"method": "deyo", "diversity": "grad"},
    "grad_mixed": {"method": "deyo", "diversity": "grad", "optimizer": ["sgd", "adam", "adamw"]},
    "grad_flips": {"method": "deyo", "diversity": "grad", "views": "flips"},
    "source_mirror": {"method": "source", "particles": 1, "views": "mirror"},
    "source_lenses": {"method": "source", "particles": 5, "lenses": "optics", "aggregate": "evidence"},
    "lenses": {"method": "deyo", "particles": 5, "lenses": "optics", "aggregate": "evidence"},
}

# A cell has fields of its own for these, or the run decides them.
_DECIDED_ELSEWHERE = (
    "model",
    "seed",
    "engine",
    "batch_size",
    "num_classes",
    "precision",
    "populations",
    "particles_at_once",
)
_OWN_FIELDS = ("preset", "particles", "views", "lenses", "lr", "lr_span", "aggregate")
_ALLOWED = ("weight", *(name for name in inspect.signature(adapt).parameters if name not in _DECIDED_ELSEWHERE))


def cell_fields(label: str, arguments: Arguments) -> dict[str, Any]:
    """The fields of a cell that say how to adapt."""
    unknown = [name for name in arguments if name not in _ALLOWED]
    if unknown:
        raise ConfigError(f"variant {label!r}: got {unknown[0]!r}; allowed are {', '.join(sorted(_ALLOWED))}.")
    rest = dict(arguments)
    method, method_options = _named(label, "method", rest.pop("method", "deyo"))
    diversity, diversity_options = _named(label, "diversity", rest.pop("diversity", "none"))
    weight_field = _weight_field(diversity)
    weight = rest.pop("weight", None)
    weight = diversity_options.pop(weight_field, weight)
    chosen: dict[str, Any] = {"variant": label, "method": method, "diversity": diversity, "weight": weight}
    options: dict[str, Any] = {}
    optimizer = rest.pop("optimizer", "sgd")
    if isinstance(optimizer, str | Mapping):
        chosen["optimizer"], settings = _named(label, "optimizer", optimizer)
        options["optimizer"] = settings
    else:
        pairs = [_named(label, "optimizer", one) for one in optimizer]
        chosen["optimizer"] = tuple(name for name, _ in pairs)
        options["optimizer"] = [settings for _, settings in pairs] if any(settings for _, settings in pairs) else None
    options.update(method=method_options, diversity=diversity_options)
    chosen["particles"] = rest.pop("particles", DEFAULT_PARTICLES)
    chosen.update({name: tupled(rest.pop(name)) for name in _OWN_FIELDS if name in rest})
    chosen["options"] = {**{name: value for name, value in options.items() if value}, **rest}
    return chosen


def adapt_arguments(cell: Cell) -> dict[str, Any]:
    """Keyword arguments of ``polytta.adapt`` for a cell."""
    rest = dict(cell.options)
    method: Any = cell.method
    if "method" in rest:
        # The preset's thresholds, and on top of them those given one by one.
        preset = PRESETS.get(cell.preset, {}).get(cell.method, {})
        method = _made(METHODS, "method", cell.method, {**preset, **rest.pop("method")})
    diversity: Any = cell.diversity
    settings = dict(rest.pop("diversity", {}))
    if cell.weight is not None:
        settings[_weight_field(cell.diversity)] = cell.weight
    if settings:
        diversity = _made(DIVERSIFIERS, "diversity", cell.diversity, settings)
    return {
        "method": method,
        "diversity": diversity,
        "optimizer": _optimizer(cell.optimizer, rest.pop("optimizer", None)),
        "preset": cell.preset,
        "particles": cell.particles,
        "views": cell.views,
        "lenses": cell.lenses,
        "lr": cell.lr,
        "lr_span": cell.lr_span,
        "aggregate": cell.aggregate,
        "seed": cell.seed,
        "batch_size": cell.batch_size,
        "precision": cell.precision,
        **rest,
    }


def _named(label: str, argument: str, value: object) -> tuple[str, dict[str, Any]]:
    if isinstance(value, str):
        return value, {}
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return value["name"], {key: item for key, item in value.items() if key != "name"}
    raise ConfigError(f"variant {label!r}: {argument} is {value!r}; allowed is a name, or a table with a name.")


def _weight_field(diversity: str) -> str:
    return "bandwidth" if diversity == "svgd" else "weight"


def _optimizer(names: str | Sequence[str], settings: Any) -> Any:
    if isinstance(names, str):
        return _made(OPTIMIZERS, "optimizer", names, settings) if settings else names
    if not settings:
        return list(names)
    return [_made(OPTIMIZERS, "optimizer", name, one) for name, one in zip(names, settings, strict=True)]


def _made(known: Mapping[str, type[Any]], argument: str, name: str, settings: Mapping[str, Any]) -> Any:
    if name not in known:
        raise ConfigError(f"{argument}: got {name!r}; allowed are {', '.join(known)}.")
    try:
        return known[name](**tupled(settings))
    except TypeError as error:
        allowed = list(inspect.signature(known[name]).parameters)
        raise ConfigError(f"{argument}: {name} got {dict(settings)}; allowed are {', '.join(allowed)}.") from error
