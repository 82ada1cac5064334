"""One cell of a grid: a model, a stream and a way to adapt, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from polytta.errors import StateError

_NOT_IDENTITY = ("weights_path", "data_path")


@dataclass(frozen=True)
class Cell:
    """What one run is asked to do. Nothing here says where or how fast.

    Attributes:
        model: name for ``polytta.models.create``.
        normalisation: "correct" or "sar2023".
        dataset: name of the dataset.
        corruption: one, several in turn or mixed, or None for data that come as they are.
        severity: 1 to 5; None without a corruption.
        scenario: name of the scenario.
        batch_size: images per batch.
        images: of each corruption; None means all.
        variant: label of the row in tables.
        method: base method.
        preset: thresholds of the method.
        particles: K.
        diversity: how particles interact.
        weight: strength of the interaction (lambda, or the bandwidth of SVGD); None means its default.
        optimizer: one, or one per particle.
        views: versions of a batch to learn from.
        lenses: how each particle looks at the images.
        lr: learning rate, or one per particle; None means the reference rule.
        lr_span: factor between neighbouring particles' learning rates.
        aggregate: how K predictions become one.
        precision: of the arithmetic.
        seed: of the order of the stream and of the adaptation.
        options: whatever else ``polytta.adapt`` is to be given.
        weights_path: file with the model's weights; not part of the cell's identity, the record has their hash.
        data_path: where the dataset lies; not part of the identity either.
    """

    model: str
    dataset: str
    corruption: str | tuple[str, ...] | None
    severity: int | None
    scenario: str
    batch_size: int
    variant: str
    method: str
    seed: int = 0
    images: int | None = None
    preset: str = "paper"
    particles: int = 1
    diversity: str = "none"
    weight: float | str | None = None
    optimizer: str | tuple[str, ...] = "sgd"
    views: str = "none"
    lenses: str = "none"
    lr: float | tuple[float, ...] | None = None
    lr_span: float | None = None
    aggregate: str = "probs"
    precision: str = "fp32"
    normalisation: str = "correct"
    options: Mapping[str, Any] = field(default_factory=dict)
    weights_path: str | None = field(default=None, compare=False)
    data_path: str | None = field(default=None, compare=False)

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

    def to_dict(self) -> dict[str, Any]:
        """Plain values that identify the cell, as a record holds them."""
        return {f.name: listed(getattr(self, f.name)) for f in fields(self) if f.name not in _NOT_IDENTITY}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Cell":
        """The cell a record tells of."""
        known = {f.name for f in fields(cls)} - set(_NOT_IDENTITY)
        wrong = sorted(stored.keys() ^ known)
        if wrong:
            raise StateError(f"cell: {wrong[0]!r} is missing or unknown; needed are {', '.join(sorted(known))}.")
        return cls(**{name: value if name == "options" else tupled(value) for name, value in stored.items()})


def listed(value: Any) -> Any:
    """Tuples as lists, all the way down: the form JSON gives back."""
    if isinstance(value, Mapping):
        return {str(key): listed(item) for key, item in value.items()}
    return [listed(item) for item in value] if isinstance(value, tuple | list) else value


def tupled(value: Any) -> Any:
    """Lists as tuples, all the way down; mappings keep their keys."""
    if isinstance(value, Mapping):
        return {key: tupled(item) for key, item in value.items()}
    return tuple(tupled(item) for item in value) if isinstance(value, list | tuple) else value
