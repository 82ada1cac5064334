"""From settings to a config: every value is checked here, once, and every part made."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from numbers import Real
from typing import Any, get_args, get_type_hints

from torch import nn

from polytta.aggregate import resolve_aggregate
from polytta.diversity import resolve_diversity
from polytta.errors import ConfigError
from polytta.guard import resolve_guard
from polytta.methods import PRESETS
from polytta.network.statistics import FEWEST_IMAGES, stores_statistics
from polytta.network.targets import choose_layers
from polytta.optim import is_one_optimizer
from polytta.optim.rule import lr_multipliers
from polytta.particles.engines import ENGINES
from polytta.settings.arrays import without_arrays
from polytta.settings.axes import Particles, particles_of
from polytta.settings.config import Config, Rates
from polytta.settings.presets import RECOMMENDED, completed, templates_of
from polytta.settings.settings import Settings
from polytta.views import resolve_views

_MOST_ROWS = 65_536
MOST_CLASSES = 1_000_000


def resolve(settings: Settings, model: nn.Module) -> Config:
    """What the settings mean for a model."""
    settings = without_arrays(settings)
    literal = isinstance(settings.preset, str) and settings.preset in PRESETS
    settings = completed(settings, model)
    check(settings)
    made = particles_of(settings)
    require_together(settings, made)
    multipliers = (
        (1.0,) * made.count
        if settings.axes == "product"
        else lr_multipliers(made.count, settings.lr_spread, settings.lr_span)
    )
    rates = _given_rates(settings, made, multipliers)
    relative = rates is not None and rates.relative
    diversity = resolve_diversity(settings.diversity)
    views, aggregate = resolve_views(settings.views), resolve_aggregate(settings.aggregate)
    guard = resolve_guard(settings.guard)
    layers = choose_layers(model, settings.targets, settings.exclude)
    large = settings.batch_size is not None and settings.batch_size >= FEWEST_IMAGES
    blends = settings.statistics == "auto" and "batch" in made.statistics and stores_statistics(model)
    # Who collects images in a window has more than the batch at hand.
    alone = all(getattr(method, "window", 1) == 1 for method in made.methods)
    blends = blends and alone and not literal and not large
    one_method = len({id(method) for method in made.methods}) == 1
    decided = replace(
        settings,
        method=made.methods[0] if one_method else made.methods,
        particles=made.count,
        axes="zip",
        # Whoever names a preset means its statistics too.
        preset=None if blends else settings.preset,
        diversity=diversity,
        optimizer=made.optimizers,
        lr=None if rates is None or relative else rates.values,
        pace=rates.values if rates is not None and relative else None,
        lr_spread=0.0 if settings.axes == "product" else settings.lr_spread,
        lr_span=None if settings.axes == "product" else settings.lr_span,
        views=views,
        lenses=made.lenses,
        aggregate=aggregate,
        guard=guard,
        targets=tuple(layers),
        exclude=None,
        statistics="auto" if blends else made.statistics[0] if len(set(made.statistics)) == 1 else made.statistics,
        seed=settings.seed if isinstance(settings.seed, int) else tuple(settings.seed),
    )
    return Config(
        decided,
        made.methods,
        diversity,
        made.optimizers,
        views,
        made.lenses,
        aggregate,
        layers,
        made.statistics,
        rates,
        multipliers,
        guard,
        _templates(settings, model, made.count),
        blends,
    )


def _templates(settings: Settings, model: nn.Module, count: int) -> tuple[int, ...] | None:
    """The template of each particle; None where all have the mean of them."""
    if settings.prompts == "mean":
        return None
    known = templates_of(model)
    return tuple(number % known for number in range(count))


def require_together(settings: Settings, made: Particles) -> None:
    """Raises ConfigError for particles that cannot be in one population."""
    different = len({(type(method), repr(method)) for method in made.methods}) > 1
    names = list(dict.fromkeys(method.name for method in made.methods)) if different else []
    if different and (settings.episodic or any(method.episodic for method in made.methods)):
        raise ConfigError(f"method: got {names}, an episodic one among them; allowed are several that go on learning.")
    if different and resolve_diversity(settings.diversity).name != "none":
        raise ConfigError(
            f"diversity: got {settings.diversity!r} between particles of methods {names}; allowed is 'none', or one "
            "method."
        )
    scaled = [one.name for one in made.optimizers if one.has_own_scale]
    if settings.pace is not None and scaled:
        raise ConfigError(
            f"pace: got {settings.pace!r} with optimizer {scaled[0]!r}, whose steps do not grow with the gradient; "
            "allowed are 'sgd', or lr=."
        )


def check(settings: Settings) -> None:
    """Raises ConfigError for the first plain value that is not allowed."""
    one_of("axes", settings.axes, ("zip", "product"))
    one_of("prompts", settings.prompts, ("mean", "own"))
    one_of("preset", settings.preset, (*PRESETS, RECOMMENDED))
    # Bounds that a file may not pass either, before anything is allocated.
    for name, least, most in (
        ("particles", 1, _MOST_ROWS),
        ("populations", 1, _MOST_ROWS),
        ("particles_at_once", 1, inf),
        ("num_classes", 2, MOST_CLASSES),
        ("batch_size", 1, inf),
        ("steps", 1, 10_000),
    ):
        if getattr(settings, name) is not None:
            whole_number(name, getattr(settings, name), least, most)
    if (settings.particles or 1) * (settings.populations or 1) > _MOST_ROWS:
        raise ConfigError(
            f"populations: got {settings.populations} of {settings.particles} particles; allowed are {_MOST_ROWS} "
            "particles in all."
        )
    if not isinstance(settings.episodic, bool):
        raise ConfigError(f"episodic: got {settings.episodic!r}; allowed are True and False.")
    if not _is_number(settings.lr_spread) or not (settings.lr_span is None or _is_number(settings.lr_span)):
        raise ConfigError(f"lr_spread, lr_span: got {settings.lr_spread!r}, {settings.lr_span!r}; allowed are numbers.")
    if not isinstance(settings.shared_noise, bool):
        raise ConfigError(f"shared_noise: got {settings.shared_noise!r}; allowed are True and False.")
    one_of("engine", settings.engine, ("auto", *ENGINES))
    hints = get_type_hints(Settings)
    for name in ("precision", "objective"):
        one_of(name, getattr(settings, name), get_args(hints[name]))
    _check_seeds(settings.seed, settings.populations)


def whole_number(argument: str, value: object, least: int, most: float = inf) -> None:
    """Raises ConfigError unless the value is a whole number of at least that size, and no larger than makes sense."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        bound = f" and <= {most}" if most < inf else ""
        raise ConfigError(f"{argument}: got {value!r}; allowed is a whole number >= {least}{bound}.")


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


LARGEST_RATE = 1e30
"""Larger ones overflow where parameters are float32, and nothing would ever move."""


def _given_rates(settings: Settings, made: Particles, multipliers: tuple[float, ...]) -> Rates | None:
    """Learning rates the user gave: one per particle is taken as it is, a common one is spread; None for the rule."""
    lr, particles, populations = made.lr, made.count, settings.populations or 1
    relative = settings.pace is not None
    argument = "pace" if relative else "lr"
    own = [optimizer.lr for optimizer in made.optimizers]
    if lr is not None and not _is_number(lr):
        each = _listed(lr)
        if each is None or not all(_is_number(value) for value in each):
            raise ConfigError(f"{argument}: got {lr!r}; allowed are a number, one per particle, or None.")
        rates = tuple(float(value) for value in each)
        if len(rates) not in (particles, particles * populations):
            raise ConfigError(
                f"{argument}: got {len(rates)} values for {particles} particles; allowed are one, or one each."
            )
        rates = rates * (particles * populations // len(rates))
        origin = f"{argument}, one per particle"
    elif all(value is None for value in own) and lr is None:
        return None
    elif any(value is None for value in own) and lr is None:
        raise ConfigError("optimizer: got some with an lr and some without; allowed are all or none, or lr=...")
    else:
        if lr is not None and any(value is not None for value in own):
            raise ConfigError(f"{argument}: got {lr!r} beside an optimizer with its own lr; allowed is one of the two.")
        common = [float(lr) if value is None else value for value in own]
        exact = not is_one_optimizer(settings.optimizer) and all(value is not None for value in own)
        one = tuple(value * (1.0 if exact else m) for value, m in zip(common, multipliers, strict=True))
        rates = one * populations
        origin = "the optimizers' own lr" if exact else f"{argument}, times each particle's multiplier"
    if not all(0 <= rate <= LARGEST_RATE for rate in rates):
        raise ConfigError(f"{argument}: got {lr!r}; allowed are numbers from 0 to {LARGEST_RATE:g}.")
    return Rates(rates, origin, relative)


def _listed(value: Any) -> list[Any] | None:
    """What there is to go through, None where there is nothing: a tensor or an array may hold a single number."""
    try:
        return None if isinstance(value, str) else list(value)
    except TypeError:
        return None


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
