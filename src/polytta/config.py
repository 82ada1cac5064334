"""The resolved settings of an adapter: everything a result depends on besides the model and the stream."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal

from torch import Tensor

from polytta.diversity import DIVERSIFIERS, Diversifier
from polytta.errors import StateError
from polytta.methods import METHODS, Method
from polytta.optim import OPTIMIZERS, Optimizer
from polytta.optim.rule import lr_multipliers, reference_lr
from polytta.particles.precision import Precision
from polytta.views import VIEWS, Views
from polytta.views.lenses import LENSES, Lenses


@dataclass(frozen=True)
class Config:
    """What an adapter does, with every default filled in.

    Attributes:
        method: the base method.
        particles: K.
        diversity: how particles interact.
        optimizers: one per particle.
        learning_rates: one per particle; None until the first batch when the reference rule decides.
        lr_origin: where the learning rates come from, in words.
        views: versions of the batch particles learn from.
        lenses: how each particle looks at the images.
        aggregate: how K predictions become one.
        layers: names of the adapted norm layers.
        engine: "folded", "static", "graph", "loop", or "auto" for the best the device has.
        precision: how exactly the frozen trunk computes: "fp32", "tf32" or "bf16".
        particles_at_once: most particles in one pass; None means all.
        statistics: what BatchNorm layers use, "batch" or "source".
        objective: "scaled" (each particle's own loss at full weight) or "literal" (1/K, as the paper prints it).
        seed: of all random numbers; one per population where there are several.
        shared_noise: whether all particles draw the same random numbers.
        lr_spread: learning-rate multipliers run from 1 - lr_spread to 1 + lr_spread.
        lr_span: instead, factor between the learning rates of neighbouring particles.
        populations: G independent populations in one batch; None is the usual single one.
        num_classes: C; None until the first batch.
        batch_size: the batch size the learning-rate rule used; None until the first batch.
    """

    method: Method
    particles: int
    diversity: Diversifier
    optimizers: tuple[Optimizer, ...]
    learning_rates: tuple[float, ...] | None
    lr_origin: str
    views: Views
    lenses: Lenses
    aggregate: str
    layers: tuple[str, ...]
    engine: str
    precision: Precision
    particles_at_once: int | None
    statistics: Literal["batch", "source"]
    objective: Literal["scaled", "literal"]
    seed: int | tuple[int, ...]
    shared_noise: bool
    lr_spread: float
    lr_span: float | None
    populations: int | None
    num_classes: int | None
    batch_size: int | None

    @property
    def multipliers(self) -> tuple[float, ...]:
        """Learning-rate multipliers of the particles."""
        return lr_multipliers(self.particles, self.lr_spread, self.lr_span)

    @property
    def rows(self) -> int:
        """Particles of all populations, G·K."""
        return self.particles * (self.populations or 1)

    @property
    def noise_owners(self) -> list[tuple[int, int]]:
        """(seed, number of the particle) that decide each row's random numbers."""
        seeds = self.seed if isinstance(self.seed, tuple) else (self.seed,) * (self.populations or 1)
        return [(seed, 0 if self.shared_noise else number) for seed in seeds for number in range(self.particles)]

    def with_reference_rates(self, model_family: str, batch: int) -> "Config":
        """These settings with learning rates by the reference rule, for a model of that family."""
        batch = self.batch_size or batch
        base = reference_lr(model_family, batch, self.method.single_image_lr_factor)
        each = zip(self.optimizers, self.multipliers, strict=True)
        one = tuple(base * optimizer.relative_lr * factor for optimizer, factor in each)
        origin = f"reference rule for a {model_family} model at batch size {batch}: {base:g} for SGD"
        return replace(self, learning_rates=one * (self.populations or 1), lr_origin=origin, batch_size=batch)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON. Tensors and callables inside a method appear as their description."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["method"] = _encode(self.method, self.method.name)
        plain["diversity"] = _encode(self.diversity, self.diversity.name)
        plain["optimizers"] = [_encode(optimizer, optimizer.name) for optimizer in self.optimizers]
        plain["views"] = next((name for name, views in VIEWS.items() if views == self.views), repr(self.views))
        plain["lenses"] = next((name for name, lenses in LENSES.items() if lenses == self.lenses), repr(self.lenses))
        return plain


def arguments_from(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ``polytta.adapt`` that bring back the settings in ``Config.to_dict()`` form."""
    try:
        rates = stored["learning_rates"]
        return {
            "method": _decode("method", stored["method"], METHODS),
            "particles": stored["particles"],
            "diversity": _decode("diversity", stored["diversity"], DIVERSIFIERS),
            "optimizer": [_decode("optimizer", one, OPTIMIZERS) for one in stored["optimizers"]],
            "lr": rates if rates is None else list(rates),
            "views": _stored_name("views", stored["views"], VIEWS),
            "lenses": _stored_name("lenses", stored.get("lenses", "none"), LENSES),
            "aggregate": stored["aggregate"],
            "targets": [f"^{re.escape(name)}$" for name in stored["layers"]],
            "exclude": None,
            "engine": stored["engine"],
            "precision": stored["precision"],
            "particles_at_once": stored.get("particles_at_once"),
            "statistics": stored["statistics"],
            "objective": stored["objective"],
            "seed": stored["seed"],
            "populations": stored["populations"],
            "shared_noise": stored["shared_noise"],
            "lr_spread": stored["lr_spread"],
            "lr_span": stored["lr_span"],
            "num_classes": stored["num_classes"],
            "batch_size": stored["batch_size"],
        }
    except (KeyError, TypeError) as error:
        raise StateError(f"settings: the stored ones are incomplete ({error}).") from error


def _encode(part: object, name: str) -> dict[str, Any]:
    if not is_dataclass(part):
        return {"name": name}
    return {"name": name, **{f.name: _plain(getattr(part, f.name)) for f in fields(part)}}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        sizes = sum(item.numel() for item in value.values() if isinstance(item, Tensor))
        return {"not stored": f"mapping of {len(value)} tensors, {sizes} values"}
    return {"not stored": repr(value)}


def _decode(argument: str, stored: Mapping[str, Any], known: Mapping[str, type[Any]]) -> Any:
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in stored.items()}
    name = str(settings.pop("name"))
    if name not in known:
        raise StateError(f"{argument}: the state was made by {name!r}, unknown here; pass {argument}= to polytta.load.")
    lost = [key for key, value in settings.items() if isinstance(value, dict)]
    if lost:
        raise StateError(
            f"{argument}: {lost[0]!r} of {name!r} is not stored in a state file; pass {argument}= to polytta.load."
        )
    return known[name](**settings)


def _stored_name(argument: str, name: str, known: Mapping[str, Any]) -> str:
    if name not in known:
        raise StateError(
            f"{argument}: the state was made with {argument} a file cannot hold; pass {argument}= to polytta.load."
        )
    return name
