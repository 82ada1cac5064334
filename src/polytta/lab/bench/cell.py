"""One cell of a grid: a model, a stream and a way to adapt, as plain values."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from torch import nn

from polytta.errors import StateError
from polytta.roles.registry import as_tuples
from polytta.settings import Settings
from polytta.settings.presets import COMPOSING, RECOMMENDED, completed

_NOT_IDENTITY = ("weights_path", "data_path", "left_out")
# A cell has fields of its own for these, or the run decides them.
_NOT_OF_A_ROW = ("seed", "batch_size", "num_classes", "engine", "populations", "particles_at_once")

# No default of their own: a preset says what they are.
_BY_PRESET = ("method", "particles", "lenses", "aggregate", "preset")

# Methods are measured as they are, unless a grid asks for a guard.
_DEFAULTS = vars(Settings(guard="off"))
OPTIONS: dict[str, Any] = {name: default for name, default in _DEFAULTS.items() if name not in _NOT_OF_A_ROW}
"""{option of ``polytta.adapt`` that a row may give: its default}."""


@dataclass(frozen=True)
class Cell:
    """What one run is asked to do. Nothing here says where or how fast.

    Attributes:
        model: name for ``polytta.models.create``.
        dataset: name of the dataset.
        corruption: one, several in turn or mixed, or None for data that come as they are.
        severity: 1 to 5; None without a corruption.
        scenario: name of the scenario.
        batch_size: images per batch.
        variant: label of the row in tables.
        seed: of the order of the stream and of the adaptation.
        images: of each corruption; None means all.
        normalisation: "correct" or "sar2023".
        settings: options of ``polytta.adapt`` that the row gives, any of ``OPTIONS``, as plain values; the others have
            their default.
        weights_path: file with the model's weights; not part of the cell's identity, the record has their hash.
        data_path: where the dataset lies; not part of the identity either.
        left_out: files of the dataset that cannot be read, and are passed over; nor is this, the record has the rest.
    """

    model: str
    dataset: str
    corruption: str | tuple[str, ...] | None
    severity: int | None
    scenario: str
    batch_size: int
    variant: str
    seed: int = 0
    images: int | None = None
    normalisation: str = "correct"
    settings: Mapping[str, Any] = field(default_factory=dict)
    weights_path: str | None = field(default=None, compare=False)
    data_path: str | None = field(default=None, compare=False)
    left_out: tuple[str, ...] = field(default=(), compare=False)

    @property
    def corruptions(self) -> tuple[str, ...]:
        """The corruptions, one or several, as a tuple."""
        if self.corruption is None:
            return ()
        return (self.corruption,) if isinstance(self.corruption, str) else self.corruption

    @property
    def words(self) -> str:
        """In words, for progress and errors."""
        parts = [self.variant, self.model.rpartition("/")[2], self.dataset]
        if self.corruption is not None:
            shown = self.corruption if isinstance(self.corruption, str) else f"{len(self.corruption)} corruptions"
            parts.append(f"{shown} {self.severity}")
        return " ".join((*parts, self.scenario, f"seed {self.seed}"))

    def option(self, name: str) -> Any:
        """An option of ``polytta.adapt`` as the row gives it, else its default."""
        return self.settings.get(name, OPTIONS[name])

    @property
    def _is_recommended(self) -> bool:
        composed = any(self.option(name) != OPTIONS[name] for name in COMPOSING)
        return bool(self.option("preset") == RECOMMENDED or (self.option("preset") is None and not composed))

    def to_settings(self, **decided: Any) -> Settings:
        """All options of ``polytta.adapt``, with those that the run decides."""
        given = {
            "guard": OPTIONS["guard"],
            **self.settings,
            "seed": self.seed,
            "batch_size": self.batch_size,
            **decided,
        }
        return Settings.of(given, f"variant {self.variant!r}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values that identify the cell, as a record holds them."""
        return {f.name: listed(getattr(self, f.name)) for f in fields(self) if f.name not in _NOT_IDENTITY}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Cell":
        """The cell a record tells of."""
        known = {f.name for f in fields(cls)} - set(_NOT_IDENTITY)
        wrong = sorted(stored.keys() ^ known)
        if wrong:
            raise StateError(f"cell: got {wrong[0]!r} too many or too few; allowed are {', '.join(sorted(known))}.")
        return cls(**{name: as_tuples(value) for name, value in stored.items()})

    def flat(self) -> dict[str, Any]:
        """Everything as single entries of a table, defaults included.

        A part is its name; settings of its own have entries of theirs, such as ``diversity.weight``. What the
        recommended population is depends on the model, so that a row of it says no more than that.
        """
        entries = {name: _entry(value) for name, value in self.to_dict().items() if name != "settings"}
        options = {name: self.option(name) for name in OPTIONS}
        if self._is_recommended:
            options["preset"] = RECOMMENDED
        else:
            plain = completed(self.to_settings(prompts="mean"), nn.Identity())
            options.update({name: getattr(plain, name) for name in _BY_PRESET})
            if self.option("prompts") == "own":
                # As many as there are templates, unless the row says: the record knows.
                options["particles"] = self.option("particles")
        entries.update({name: _entry(value) for name, value in options.items()})
        entries.update(entry for name in self.settings for entry in _own_settings(name, self.settings[name]))
        return entries


def part_name(part: Any) -> Any:
    """The name of a part that is given as a table, anything else as it is."""
    return part["name"] if isinstance(part, Mapping) and "name" in part else part


def listed(value: Any) -> Any:
    """Tuples as lists, all the way down: the form JSON gives back."""
    if isinstance(value, Mapping):
        return {str(key): listed(item) for key, item in value.items()}
    return [listed(item) for item in value] if isinstance(value, tuple | list) else value


def _entry(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return "+".join(str(part_name(item)) for item in value)
    value = part_name(value)
    return json.dumps(listed(value), sort_keys=True) if isinstance(value, Mapping) else value


def _own_settings(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """(entry, value) of the settings beside a part's name."""
    if isinstance(value, tuple | list):
        for number, item in enumerate(value):
            yield from _own_settings(f"{name}.{number}", item)
    elif isinstance(value, Mapping) and "name" in value:
        yield from ((f"{name}.{key}", _entry(own)) for key, own in value.items() if key != "name")
