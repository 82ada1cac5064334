"""``OPTION=VALUE``: an option of ``polytta.adapt`` as a command line gives it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from polytta.errors import ConfigError
from polytta.lab.bench.cell import OPTIONS


def read_options(argument: str, given: Sequence[str]) -> dict[str, Any]:
    """{option: value}; a value is what it is in JSON, a list where it has commas, and a word otherwise."""
    options = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"{argument}: got {text!r}; allowed is OPTION=VALUE.")
        if name not in OPTIONS:
            raise ConfigError(f"{argument}: got {name!r}; allowed are {', '.join(sorted(OPTIONS))}.")
        options[name] = _value(value)
    return options


def write_options(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts that ``read_options`` reads as these."""
    return tuple(f"{name}={json.dumps(value, default=str)}" for name, value in options.items())


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError:
        return [_value(item) for item in text.split(",")] if "," in text else text


def _refuse(constant: str) -> None:
    """NaN and the infinities, which JSON does not know and Python's reader takes all the same."""
    raise ValueError(constant)
