"""A grid from a TOML or YAML file: the same fields, the same types, nothing else."""

import sys
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from polytta.errors import ConfigError, DataError
from polytta.lab.bench.given_options import write_options
from polytta.lab.bench.grid import Grid


def read_grid(file: str | Path) -> Grid:
    """The grid a file describes."""
    path = Path(file)
    if not path.is_file():
        raise DataError(f"--config: got {path}, which is missing; allowed is a TOML or YAML file.")
    content = _parsed(path)
    if not isinstance(content, dict):
        raise ConfigError(f"--config: got {path}, which holds no table; allowed is a table of settings.")
    hints = get_type_hints(Grid)
    unknown = [name for name in content if name not in hints]
    if unknown:
        raise ConfigError(
            f"--config: got {unknown[0]!r} in {path}; allowed are {', '.join(f.name for f in fields(Grid))}."
        )
    if isinstance(content.get("set"), dict):
        content["set"] = list(write_options(content["set"]))
    return Grid(**{name: _typed(path, name, value, hints[name]) for name, value in content.items()})


def _parsed(path: Path) -> Any:
    try:
        if path.suffix == ".toml":
            toml = import_module("tomllib") if sys.version_info >= (3, 11) else _extra("tomli")
            return toml.loads(path.read_text("utf-8"))
        if path.suffix in (".yaml", ".yml"):
            return _extra("yaml").safe_load(path.read_text("utf-8"))
    except ConfigError:
        raise
    except Exception as error:  # each library has an error of its own
        story = " ".join(str(error).split())
        raise ConfigError(f"--config: got {path}, which cannot be read ({story}); allowed is TOML or YAML.") from error
    raise ConfigError(f"--config: got {path}; allowed are files ending in .toml, .yaml or .yml.")


def _extra(module: str) -> Any:
    if find_spec(module) is None:
        raise ConfigError(f"--config: got a file that needs {module}; allowed after pip install 'polytta[bench]'.")
    return import_module(module)


def _typed(path: Path, name: str, value: Any, hint: Any) -> Any:
    if get_origin(hint) is tuple:
        kind = get_args(hint)[0]
        if isinstance(value, list) and all(_is(item, kind) for item in value):
            return tuple(kind(item) for item in value)
        raise ConfigError(f"--config: got {name} = {value!r} in {path}; allowed is a list of {kind.__name__}.")
    if get_origin(hint) is dict:
        if isinstance(value, dict) and all(isinstance(item, dict) for item in value.values()):
            return value
        raise ConfigError(
            f"--config: got {name} = {value!r} in {path}; allowed are tables of options of polytta.adapt."
        )
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if any(_is(value, kind) for kind in kinds):
        return value
    shown = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
    raise ConfigError(f"--config: got {name} = {value!r} in {path}; allowed is {shown}.")


def _is(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)
