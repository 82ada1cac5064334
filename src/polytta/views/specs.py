"""Sets of transforms from what a user or a file says, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol, TypeVar

from polytta.errors import ConfigError, StateError
from polytta.roles.registry import NOT_STORED, load_object, path_of_object
from polytta.views.transforms import TRANSFORMS, View

Chosen = TypeVar("Chosen", bound="TransformSet")


class TransformSet(Protocol):
    """What holds transforms and can say whether they make sense: a frozen dataclass."""

    def __init__(self, transforms: tuple[View, ...]) -> None: ...

    def validate(self) -> None:
        """Raises ConfigError when they do not."""


def require_transforms(argument: str, transforms: Sequence[object]) -> None:
    """Raises ConfigError when there is nothing to see."""
    if not transforms or not all(callable(one) for one in transforms):
        raise ConfigError(f"{argument}: got {transforms!r}; allowed is at least one callable.")


def resolve_transforms(argument: str, spec: object, known: Mapping[str, Chosen], kind: type[Chosen]) -> Chosen:
    """Transforms from a name, ``module:name``, names or callables, a table, or an object of that kind."""
    if isinstance(spec, kind):
        resolved = spec
    elif isinstance(spec, str) and spec in known:
        resolved = known[spec]
    elif isinstance(spec, str) and (spec in TRANSFORMS or ":" in spec):
        found = _transform(argument, spec)
        resolved = found if isinstance(found, kind) else kind((found,))
    elif isinstance(spec, Mapping) and NOT_STORED in spec:
        raise StateError(
            f"{argument}: got a state made with {argument} a file cannot hold; allowed is {argument}= in polytta.load."
        )
    elif isinstance(spec, Mapping) and isinstance(spec.get("transforms"), list | tuple):
        resolved = _from_table(argument, spec, kind)
    elif isinstance(spec, Sequence) and not isinstance(spec, str):
        resolved = kind(tuple(_transform(argument, one) for one in spec))
    else:
        raise ConfigError(
            f"{argument}: got {spec!r}; allowed are {sorted(known)}, names of {sorted(TRANSFORMS)}, 'module:name', "
            f"callables, or {kind.__module__}.{kind.__name__}."
        )
    resolved.validate()
    return resolved


def plain_transforms(chosen: Any, known: Mapping[str, Any]) -> Any:
    """The name of a set of transforms, a table that brings it back, or a description of what a file cannot hold."""
    for name, one in known.items():
        if one == chosen:
            return name
    names = {transform: name for name, transform in TRANSFORMS.items()}
    paths = [names.get(one) or path_of_object(one) for one in chosen.transforms]
    if None in paths:
        return {NOT_STORED: repr(chosen)}
    return {f.name: getattr(chosen, f.name) for f in fields(chosen)} | {"transforms": paths}


def _from_table(argument: str, table: Mapping[str, Any], kind: type[Chosen]) -> Chosen:
    values = {**table, "transforms": tuple(_transform(argument, one) for one in table["transforms"])}
    try:
        return kind(**values)
    except TypeError as error:
        allowed = ", ".join(f.name for f in fields(kind))  # type: ignore[arg-type]
        raise ConfigError(f"{argument}: got {dict(table)}; allowed are {allowed}.") from error


def _transform(argument: str, one: Any) -> Any:
    if isinstance(one, str):
        if ":" in one:
            return load_object(argument, one)
        if one not in TRANSFORMS:
            raise ConfigError(f"{argument}: got {one!r}; allowed are {sorted(TRANSFORMS)}, 'module:name' or callables.")
        return TRANSFORMS[one]
    return one
