"""Settings as plain values, for state files and records, and back."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from polytta.aggregate import AGGREGATES, Aggregate
from polytta.diversity import DIVERSIFIERS, Diversifier
from polytta.errors import StateError
from polytta.guard import GUARDS, Guard
from polytta.methods import METHODS, Method
from polytta.optim import OPTIMIZERS, Optimizer
from polytta.roles.registry import as_tuples, plain_value, source_digest
from polytta.settings.settings import Settings
from polytta.views import LENSES, VIEWS, Lenses, Views, plain_transforms


def to_plain(settings: Settings) -> dict[str, Any]:
    """All options, ready for JSON. What a file cannot hold appears as its description."""
    return {f.name: _plain(getattr(settings, f.name)) for f in fields(settings)}


def from_plain(stored: Mapping[str, Any]) -> Settings:
    """The settings that ``to_plain`` described, parts as tables; options newer than a file have their default."""
    known = {f.name for f in fields(Settings)}
    unknown = sorted(stored.keys() - known)
    if unknown:
        raise StateError(f"settings: got {unknown[0]!r}, of another version; allowed are {', '.join(sorted(known))}.")
    return Settings(**{name: as_tuples(value) for name, value in stored.items()})


def plugin_sources(settings: Settings) -> dict[str, str]:
    """{part: SHA-256 of the file it comes from} of every part that is not polytta's own."""
    parts: dict[str, object] = {"diversity": settings.diversity}
    methods = settings.method if isinstance(settings.method, tuple) else (settings.method,)
    parts.update({f"method {number}" if number else "method": one for number, one in enumerate(methods)})
    parts["aggregate"] = settings.aggregate
    parts["guard"] = settings.guard
    optimizers = settings.optimizer if isinstance(settings.optimizer, tuple) else (settings.optimizer,)
    parts.update({f"optimizer {number}": one for number, one in enumerate(optimizers)})
    for name in ("views", "lenses"):
        transforms = getattr(getattr(settings, name), "transforms", ())
        parts.update({f"{name} {number}": one for number, one in enumerate(transforms)})
    digests = {name: source_digest(part) for name, part in parts.items()}
    return {name: digest for name, digest in digests.items() if digest is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Method):
        return METHODS.plain(value)
    if isinstance(value, Diversifier):
        return DIVERSIFIERS.plain(value)
    if isinstance(value, Aggregate):
        return AGGREGATES.plain(value)
    if isinstance(value, Guard):
        return GUARDS.plain(value)
    if isinstance(value, Optimizer):
        return OPTIMIZERS.plain(value)
    if isinstance(value, Views):
        return plain_transforms(value, VIEWS)
    if isinstance(value, Lenses):
        return plain_transforms(value, LENSES)
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return plain_value(value)
