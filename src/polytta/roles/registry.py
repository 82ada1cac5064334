"""Parts by name: a name we know, ``module:Class``, a table with a name and settings, a class, or an object.

Whoever installs a package with an entry point in a registry's group (``polytta.methods``, say) has its name too.
"""

import dataclasses
import hashlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, get_type_hints

from torch import Tensor

from polytta.errors import ConfigError, StateError

NOT_STORED = "not stored"
"""Key of a value that a file cannot hold, in the plain form of a part."""
LATER = {"later": True}
"""Metadata of a part's field that came later: its default goes unsaid, so that records from before keep their keys."""


class Part(Protocol):
    """What a registry holds the classes of."""

    name: ClassVar[str]

    def validate(self) -> None:
        """Raises ConfigError when a field has a value that is not allowed."""


P = TypeVar("P", bound=Part)


class Registry(Mapping[str, type[P]], Generic[P]):
    """The classes that play one role.

    Args:
        argument: of ``polytta.adapt`` that takes them.
        kind: their base class.
        classes: those polytta brings.
    """

    def __init__(self, argument: str, kind: type[P], classes: Iterable[type[P]]) -> None:
        self.argument, self.kind = argument, kind
        self.group = kind.__module__.rpartition(".")[0]
        self._classes: dict[str, type[P]] = {one.name: one for one in classes}

    def __getitem__(self, name: str) -> type[P]:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def register(self, one: type[P]) -> type[P]:
        """Makes a class available by its ``name``; also as a decorator."""
        if not (inspect.isclass(one) and issubclass(one, self.kind)):
            raise ConfigError(f"{self.argument}: got {one!r}; allowed is a subclass of {self.kind.__name__}.")
        if not isinstance(getattr(one, "name", None), str):
            raise ConfigError(f"{self.argument}: got {one.__name__} without a name; allowed is a class with one.")
        known = self._classes.setdefault(one.name, one)
        if known is not one and _path_of(known) != _path_of(one):
            raise ConfigError(
                f"{self.argument}: got the name {one.name!r}, which {_path_of(known)} has; allowed is another."
            )
        self._classes[one.name] = one
        return one

    def make(self, spec: object, presets: Mapping[str, Mapping[str, Any]] | None = None) -> P:
        """A validated object.

        Args:
            spec: what the user gave.
            presets: {name: settings} for parts given by name; settings given beside the name win.
        """
        if isinstance(spec, self.kind):
            part = spec
        elif inspect.isclass(spec) and issubclass(spec, self.kind):
            part = spec()
        elif isinstance(spec, str):
            part = self._make(spec, (presets or {}).get(spec, {}))
        elif isinstance(spec, Mapping) and isinstance(spec.get("name"), str):
            given = {key: value for key, value in spec.items() if key != "name"}
            part = self._make(spec["name"], {**(presets or {}).get(spec["name"], {}), **given})
        else:
            raise ConfigError(f"{self.argument}: got {spec!r}; allowed {self._allowed}.")
        if type(part) is self.kind:
            raise ConfigError(f"{self.argument}: got the bare {self.kind.__name__}; allowed {self._allowed}.")
        try:
            part.validate()
        except TypeError as error:
            raise ConfigError(
                f"{self.argument}: got {part!r} ({error}); allowed are numbers where it has numbers."
            ) from error
        return part

    def name_of(self, part: P) -> str:
        """The name that brings a part's class back: its own, or ``module:Class``."""
        known = self._classes.get(part.name)
        return str(part.name) if known is type(part) else _path_of(type(part))

    def plain(self, part: P) -> dict[str, Any]:
        """A part as plain values, a table that ``make`` takes."""
        described: dict[str, Any] = {"name": self.name_of(part)}
        if dataclasses.is_dataclass(part):
            given = {f.name: getattr(part, f.name) for f in dataclasses.fields(part) if not _goes_unsaid(part, f)}
            tables = _tables_of(type(part))
            for name, value in given.items():
                whole = name in tables and type(value) is tables[name]
                described[name] = _spelt_out(value) if whole else plain_value(value)
        elif vars(part):
            described[NOT_STORED] = repr(part)
        return described

    def _make(self, name: str, settings: Mapping[str, Any]) -> P:
        found = self._class(name)
        lost = [key for key, value in settings.items() if key == NOT_STORED or _is_lost(value)]
        if lost:
            of = "settings are" if lost[0] == NOT_STORED else f"{lost[0]!r} is"
            raise StateError(
                f"{self.argument}: got {name!r} whose {of} not stored in a state file; "
                f"allowed is {self.argument}= in polytta.load."
            )
        tables = _tables_of(found)
        given = {
            key: self._filled(f"{name}.{key}", tables[key], value)
            if key in tables and isinstance(value, Mapping)
            else as_tuples(value)
            for key, value in settings.items()
        }
        try:
            return found(**given)
        except TypeError as error:
            allowed = ", ".join(inspect.signature(found).parameters) or "none"
            raise ConfigError(f"{self.argument}: got {name!r} with {dict(settings)}; allowed are {allowed}.") from error

    def _filled(self, name: str, kind: type, table: Mapping[str, Any]) -> Any:
        """A dataclass within a part, from a table of its fields."""
        try:
            return kind(**{key: as_tuples(value) for key, value in table.items()})
        except TypeError as error:
            allowed = ", ".join(one.name for one in dataclasses.fields(kind))
            raise ConfigError(f"{self.argument}: got {name}={dict(table)}; allowed is a table of {allowed}.") from error

    def _class(self, name: str) -> type[P]:
        if ":" in name:
            found = load_object(self.argument, name)
            if not (inspect.isclass(found) and issubclass(found, self.kind)):
                raise ConfigError(f"{self.argument}: got {name!r}, a {found!r}; allowed {self._allowed}.")
            return found
        if name not in self._classes:
            for entry in entry_points(group=self.group, name=name):
                return self.register(entry.load())
            raise ConfigError(f"{self.argument}: got {name!r}; allowed {self._allowed}.")
        return self._classes[name]

    @property
    def _allowed(self) -> str:
        return f"are {sorted(self)}, a table with a name, 'module:Class', or an object of {self.group}"


def load_object(argument: str, path: str) -> Any:
    """What ``module:name`` names."""
    module, _, name = path.partition(":")
    try:
        found: Any = import_module(module)
    except (ImportError, ValueError, TypeError) as error:
        raise ConfigError(f"{argument}: got {path!r}; allowed are modules that can be imported ({error}).") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"{argument}: got {path!r}; allowed is a name that {module!r} has.")
        found = getattr(found, part)
    return found


def path_of_object(value: object) -> str | None:
    """``module:name`` of a function or class that can be found there again, None of any other object."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name or module == "__main__":
        return None
    try:
        return f"{module}:{name}" if load_object("", f"{module}:{name}") is value else None
    except ConfigError:
        return None


def plain_value(value: Any) -> Any:
    """A setting as JSON can hold it; what it cannot hold is described."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [plain_value(item) for item in value]
    if isinstance(value, Mapping):
        sizes = sum(item.numel() for item in value.values() if isinstance(item, Tensor))
        return {NOT_STORED: f"mapping of {len(value)} tensors, {sizes} values"}
    return {NOT_STORED: repr(value)}


def _spelt_out(value: Any) -> dict[str, Any]:
    """A dataclass within a part as a table of its fields."""
    return {one.name: plain_value(getattr(value, one.name)) for one in dataclasses.fields(value)}


def _tables_of(kind: type) -> dict[str, type[Any]]:
    """The fields of a part that hold a dataclass, which is a table in its plain form."""
    try:
        hints = get_type_hints(kind)
    except (NameError, TypeError):
        return {}
    return {name: hint for name, hint in hints.items() if inspect.isclass(hint) and dataclasses.is_dataclass(hint)}


def _goes_unsaid(part: object, one: "dataclasses.Field[Any]") -> bool:
    """Whether a field that came later has the value that parts had before it."""
    return "later" in one.metadata and getattr(part, one.name) == one.default


def _is_lost(value: Any) -> bool:
    """Whether something in a plain value was not stored."""
    if isinstance(value, Mapping):
        return NOT_STORED in value or any(map(_is_lost, value.values()))
    return isinstance(value, list | tuple) and any(map(_is_lost, value))


def as_tuples(value: Any) -> Any:
    """Lists as tuples, all the way down; mappings keep their keys."""
    if isinstance(value, Mapping):
        return {key: as_tuples(item) for key, item in value.items()}
    return tuple(as_tuples(item) for item in value) if isinstance(value, list | tuple) else value


def source_digest(part: object) -> str | None:
    """SHA-256 of the file that defines a part from outside polytta, None of our own or of what has no file."""
    owner: Any = part if inspect.isroutine(part) or inspect.isclass(part) else type(part)
    module = getattr(owner, "__module__", "") or ""
    if module.partition(".")[0] in ("polytta", "builtins", "torch"):
        return None
    try:
        file = inspect.getsourcefile(owner)
    except TypeError:
        return None
    return None if file is None or not Path(file).is_file() else _first_digest(owner, file)


@cache
def _first_digest(owner: object, file: str) -> str:
    """Of the file as it was when its part was first asked for: what it says later is not what this process runs."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _path_of(one: type) -> str:
    return f"{one.__module__}:{one.__qualname__}"
