"""From lists of methods, lenses, rates, statistics and optimizers to particles, one of each per particle."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias, get_args

from polytta.errors import ConfigError
from polytta.methods import Method, resolve_method
from polytta.network.statistics import Statistics
from polytta.optim import OPTIMIZERS, Optimizer, is_one_optimizer, resolve_optimizers
from polytta.settings.settings import Settings
from polytta.views import Lenses, View, resolve_lenses

Row: TypeAlias = tuple[Method, str, Optimizer, Any, View]
ALLOWED_STATISTICS = ("auto", *get_args(Statistics))


@dataclass(frozen=True)
class Particles:
    """What particles are made of, K of each but the rates, which may not be known yet.

    Attributes:
        methods: what each learns by.
        lenses: how they look.
        statistics: what BatchNorm layers use for each.
        optimizers: how they move.
        lr: learning rates or paces as the user gave them: none, one for all, or one each.
    """

    methods: tuple[Method, ...]
    lenses: Lenses
    statistics: tuple[Statistics, ...]
    optimizers: tuple[Optimizer, ...]
    lr: Any

    @property
    def count(self) -> int:
        """K."""
        return len(self.optimizers)


def particles_of(settings: Settings) -> Particles:
    """The particles that settings describe."""
    methods = _methods(settings)
    statistics = _statistics(settings.statistics)
    lenses = resolve_lenses(settings.lenses)
    lr = settings.lr if settings.pace is None else settings.pace
    if settings.lr is not None and settings.pace is not None:
        raise ConfigError(f"pace: got {settings.pace!r} beside lr {settings.lr!r}; allowed is one of the two.")
    if settings.axes == "product":
        return _multiplied(settings, methods, lenses, statistics, lr)
    count = settings.particles or 1
    optimizers = resolve_optimizers(settings.optimizer, count)
    own = _one_each("method", methods, count)
    kinds = _one_each("statistics", statistics, count)
    looks = len(lenses.transforms)
    # Of a set with a name, the first ones are meant; of a list, all that somebody wrote down. One particle alone takes
    # the first, since rows of a benchmark share their options.
    listed = isinstance(settings.lenses, Sequence) and not isinstance(settings.lenses, str)
    if 1 < looks < count or (listed and looks > count > 1):
        raise ConfigError(f"lenses: got {looks} for {count} particles; allowed are one, one each, or axes='product'.")
    return Particles(own, lenses, _decided(kinds, own), optimizers, lr)


def _multiplied(
    settings: Settings, methods: Sequence[Method], lenses: Lenses, statistics: Sequence[str], lr: Any
) -> Particles:
    """A particle of every combination; lenses vary fastest, so that the first ones are all ways to look."""
    movers: Any = settings.optimizer
    several = isinstance(movers, Sequence) and not is_one_optimizer(movers)
    optimizers = list(movers) if several else [movers]
    rates = [lr] if lr is None or not isinstance(lr, Sequence) or isinstance(lr, str) else list(lr)
    made = [OPTIMIZERS.make(one) for one in optimizers]
    rows = _each_once(list(product(methods, statistics, made, rates, lenses.transforms)))
    if settings.particles is not None and settings.particles != len(rows):
        raise ConfigError(
            f"particles: got {settings.particles} for axes that make {len(rows)}; allowed are {len(rows)} or None."
        )
    if not rows:
        raise ConfigError("axes: got an empty list among them; allowed are lists of at least one.")
    own = tuple(row[0] for row in rows)
    return Particles(
        own,
        Lenses(tuple(row[4] for row in rows)),
        _decided(tuple(row[1] for row in rows), own),
        tuple(row[2] for row in rows),
        None if lr is None else tuple(row[3] for row in rows),
    )


def _each_once(rows: list[Row]) -> list[Row]:
    """Without those who learn nothing where another looks alike: they are the same by whatever they would learn."""
    kept: list[Row] = []
    silent: set[tuple[str, int]] = set()
    for row in rows:
        method, statistics, _, rate, lens = row
        looks = (method.statistics if statistics == "auto" else statistics, id(lens))
        if rate == 0 and looks in silent:
            continue
        if rate == 0:
            silent.add(looks)
        kept.append(row)
    return kept


def _methods(settings: Settings) -> tuple[Method, ...]:
    given: Any = settings.method
    several = isinstance(given, Sequence) and not isinstance(given, str)
    preset = settings.preset or "paper"
    methods = tuple(resolve_method(one, preset) for one in (given if several else [given]))
    if not methods:
        raise ConfigError(f"method: got {given!r}; allowed is at least one.")
    return methods


def _statistics(given: str | Sequence[str]) -> tuple[str, ...]:
    kinds = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    wrong = [kind for kind in kinds if kind not in ALLOWED_STATISTICS]
    if wrong or not kinds:
        raise ConfigError(f"statistics: got {given!r}; allowed are {list(ALLOWED_STATISTICS)}, or one per particle.")
    return kinds


def _one_each(argument: str, values: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise ConfigError(f"{argument}: got {len(values)} for {count} particles; allowed are one, or one each.")
    return values


def _decided(kinds: Sequence[str], methods: Sequence[Method]) -> tuple[Statistics, ...]:
    """ "auto" is the method's own choice."""
    return tuple(method.statistics if kind == "auto" else kind for kind, method in zip(kinds, methods, strict=True))  # type: ignore[misc]
