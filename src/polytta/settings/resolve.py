"""From settings to a config: every value is checked here, once, and every part made."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from numbers import Real
from typing import Any, get_args, get_type_hints

from torch import nn

from polytta.aggregate import resolve_aggregate
from polytta.diversity import resolve_diversity
from polytta.errors import ConfigError
from polytta.methods import resolve_method
from polytta.network.targets import choose_layers
from polytta.optim import Optimizer, is_one_optimizer, resolve_optimizers
from polytta.optim.rule import lr_multipliers
from polytta.particles.engines import ENGINES
from polytta.settings.config import Config, Rates
from polytta.settings.settings import Settings
from polytta.views import resolve_lenses, resolve_views


def resolve(settings: Settings, model: nn.Module) -> Config:
    """What the settings mean for a model."""
    check(settings)
    method = resolve_method(settings.method, settings.preset)
    optimizers = resolve_optimizers(settings.optimizer, settings.particles)
    rates = _given_rates(settings, optimizers)
    lenses, diversity = resolve_lenses(settings.lenses), resolve_diversity(settings.diversity)
    views, aggregate = resolve_views(settings.views), resolve_aggregate(settings.aggregate)
    layers = choose_layers(model, settings.targets, settings.exclude)
    statistics: Any = method.statistics if settings.statistics == "auto" else settings.statistics
    decided = replace(
        settings,
        method=method,
        diversity=diversity,
        optimizer=optimizers,
        lr=None if rates is None else rates.values,
        views=views,
        lenses=lenses,
        aggregate=aggregate,
        targets=tuple(layers),
        exclude=None,
        statistics=statistics,
        seed=settings.seed if isinstance(settings.seed, int) else tuple(settings.seed),
    )
    return Config(decided, method, diversity, optimizers, views, lenses, aggregate, layers, statistics, rates)


def check(settings: Settings) -> None:
    """Raises ConfigError for the first plain value that is not allowed."""
    whole_number("particles", settings.particles, 1)
    for name, least in (("populations", 1), ("particles_at_once", 1), ("num_classes", 2), ("batch_size", 1)):
        if getattr(settings, name) is not None:
            whole_number(name, getattr(settings, name), least)
    if not _is_number(settings.lr_spread) or not (settings.lr_span is None or _is_number(settings.lr_span)):
        raise ConfigError(f"lr_spread, lr_span: got {settings.lr_spread!r}, {settings.lr_span!r}; allowed are numbers.")
    if not isinstance(settings.shared_noise, bool):
        raise ConfigError(f"shared_noise: got {settings.shared_noise!r}; allowed are True and False.")
    one_of("engine", settings.engine, ("auto", *ENGINES))
    hints = get_type_hints(Settings)
    for name in ("precision", "statistics", "objective"):
        one_of(name, getattr(settings, name), get_args(hints[name]))
    _check_seeds(settings.seed, settings.populations)


def whole_number(argument: str, value: object, least: int) -> None:
    """Raises ConfigError unless the value is a whole number of at least that size."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{argument}: got {value!r}; allowed is a whole number >= {least}.")


def one_of(argument: str, value: object, allowed: Sequence[str]) -> None:
    """Raises ConfigError unless the value is among those allowed."""
    if value not in allowed:
        raise ConfigError(f"{argument}: got {value!r}; allowed are {list(allowed)}.")


def _check_seeds(seed: object, populations: int | None) -> None:
    """One seed, or one per population."""
    if populations is None or isinstance(seed, int) or not isinstance(seed, Sequence):
        whole_number("seed", seed, 0)
        return
    for one in seed:
        whole_number("seed", one, 0)
    if len(seed) != populations:
        raise ConfigError(f"seed: got {len(seed)} for {populations} populations; allowed are one, or one each.")


def _given_rates(settings: Settings, optimizers: tuple[Optimizer, ...]) -> Rates | None:
    """Learning rates the user gave: one per particle is taken as it is, a common one is spread; None for the rule."""
    lr, particles, populations = settings.lr, settings.particles, settings.populations or 1
    multipliers = lr_multipliers(particles, settings.lr_spread, settings.lr_span)
    own = [optimizer.lr for optimizer in optimizers]
    if lr is not None and not _is_number(lr):
        if isinstance(lr, str) or not isinstance(lr, Iterable) or not all(_is_number(value) for value in lr):
            raise ConfigError(f"lr: got {lr!r}; allowed are a number, one per particle, or None.")
        rates = tuple(float(value) for value in lr)
        if len(rates) not in (particles, particles * populations):
            raise ConfigError(f"lr: got {len(rates)} values for {particles} particles; allowed are one, or one each.")
        rates = rates * (particles * populations // len(rates))
        origin = "lr, one per particle"
    elif all(value is None for value in own) and lr is None:
        return None
    elif any(value is None for value in own) and lr is None:
        raise ConfigError("optimizer: got some with an lr and some without; allowed are all or none, or lr=...")
    else:
        if lr is not None and any(value is not None for value in own):
            raise ConfigError(f"lr: got {lr!r} beside an optimizer with its own lr; allowed is one of the two.")
        common = [float(lr) if value is None else value for value in own]  # type: ignore[arg-type]
        exact = not is_one_optimizer(settings.optimizer) and all(value is not None for value in own)
        one = tuple(value * (1.0 if exact else m) for value, m in zip(common, multipliers, strict=True))
        rates = one * populations
        origin = "the optimizers' own lr" if exact else "lr, times each particle's multiplier"
    if not all(0 <= rate < inf for rate in rates):
        raise ConfigError(f"lr: got {lr!r}; allowed are finite numbers >= 0.")
    return Rates(rates, origin)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
