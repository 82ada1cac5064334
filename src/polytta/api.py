"""``polytta.adapt`` and ``polytta.load``: from plain arguments to an adapter."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from torch import nn

from polytta.adapter import Adapted
from polytta.aggregate import check_aggregate
from polytta.config import Config, arguments_from
from polytta.diversity import Diversifier, resolve_diversity
from polytta.errors import ConfigError, StateError
from polytta.methods import Method, resolve_method
from polytta.network.copies import unwrap
from polytta.network.targets import Patterns, choose_layers
from polytta.optim import Optimizer, OptimizerSpec, resolve_optimizers
from polytta.optim.rule import lr_multipliers
from polytta.particles import ENGINES
from polytta.particles.precision import PRECISIONS, Precision
from polytta.persist import check_source, read
from polytta.report import Totals
from polytta.views import View, Views, resolve_views
from polytta.views.lenses import Lenses, resolve_lenses


def adapt(
    model: nn.Module,
    method: str | Method = "deyo",
    *,
    particles: int = 3,
    diversity: str | Diversifier = "none",
    optimizer: OptimizerSpec | Sequence[OptimizerSpec] = "sgd",
    lr: float | Sequence[float] | None = None,
    views: str | Sequence[View] | Views = "none",
    lenses: str | Sequence[View] | Lenses = "none",
    preset: str = "paper",
    aggregate: str = "probs",
    targets: Patterns = None,
    exclude: Patterns = "auto",
    engine: str = "auto",
    precision: Precision = "fp32",
    particles_at_once: int | None = None,
    statistics: Literal["auto", "batch", "source"] = "auto",
    objective: Literal["scaled", "literal"] = "scaled",
    seed: int | Sequence[int] = 0,
    shared_noise: bool = False,
    lr_spread: float = 0.2,
    lr_span: float | None = None,
    populations: int | None = None,
    num_classes: int | None = None,
    batch_size: int | None = None,
) -> Adapted:
    """Wraps an image classifier so that it adapts to the stream it predicts on.

    Args:
        model: any ``nn.Module`` from (B, ...) images to (B, C) logits, on any device; it is never changed.
        method: what each particle learns from: a name or an object from ``polytta.methods``.
        particles: number K of hypotheses; 1 is the plain base method.
        diversity: how particles interact: a name or an object from ``polytta.diversity``.
        optimizer: one spec or K of them: names or objects from ``polytta.optim``.
        lr: learning rate, or one per particle (of one or of every population); None applies the public code's rule for
            the model and batch size.
        views: versions of the batch to learn from: a name, callables, or ``polytta.views.Views``.
        lenses: how each particle looks at the images: "none" alike, "optics" as they are, from farther away, sharper,
            mirrored, and from much farther away (the first K of these); or callables. Best with
            ``aggregate="evidence"``; not with diversity "grad", which compares images pixel by pixel.
        preset: thresholds for methods given by name: "paper", or "official" for each method's own public code.
        aggregate: "probs" averages probabilities, "logits" averages logits, "evidence" weights particles by how sure
            and how balanced their answers have been (``polytta.aggregate.evidence``).
        targets: norm layers to adapt, names or regular expressions; None means all.
        exclude: norm layers to leave alone; "auto" freezes the top of the network (``polytta.network.targets``)
            unless ``targets`` says what to adapt; None excludes nothing.
        engine: "folded" (all particles in one pass), "graph" (the same recorded as CUDA graphs), "static" (folded with
            fixed shapes), "loop" (one particle at a time), or "auto": "graph" on a CUDA device, else "folded".
        precision: "fp32", or on a CUDA device "tf32" or "bf16" for a faster frozen trunk
            (``polytta.particles.precision``).
        particles_at_once: most particles in one pass; fewer need less memory and more time, and change no answer (a
            second derivative needs all of them).
        statistics: what BatchNorm layers use: "batch", "source", or "auto" for the method's own choice.
        objective: "scaled", or "literal" for the paper's factor 1/K.
        seed: of all random numbers; equal seeds and streams give equal predictions. With populations, one each.
        shared_noise: give all particles the same random numbers.
        lr_spread: particles' learning rates run from (1 - lr_spread) to (1 + lr_spread) times the common one.
        lr_span: instead, each particle's learning rate is this factor above its neighbour's, so that the population
            tries rates of different magnitude at once.
        populations: run G independent populations of K particles in one batch, each with its own stream: ``adapted(x)``
            then takes (G, B, ...) images and returns (G, B, C), equal to G separate runs at far less than G times the
            cost at small batches.
        num_classes: C, when it should be checked; otherwise read off the first output.
        batch_size: batch size for the learning-rate rule; None means that of the first batch.

    Returns:
        An ``Adapted`` module: ``log_probs = adapted(x)`` predicts, then adapts.
    """
    if not isinstance(model, nn.Module):
        raise ConfigError(f"model: got {type(model).__name__}; allowed is a torch.nn.Module.")
    model = unwrap(model)
    _whole_number("particles", particles, 1)
    for name, value, least in (
        ("populations", populations, 1),
        ("particles_at_once", particles_at_once, 1),
        ("num_classes", num_classes, 2),
        ("batch_size", batch_size, 1),
    ):
        if value is not None:
            _whole_number(name, value, least)
    if not _is_number(lr_spread) or not (lr_span is None or _is_number(lr_span)):
        raise ConfigError(f"lr_spread, lr_span: got {lr_spread!r}, {lr_span!r}; allowed are numbers.")
    if not isinstance(shared_noise, bool):
        raise ConfigError(f"shared_noise: got {shared_noise!r}; allowed are True and False.")
    _one_of("engine", engine, ("auto", *ENGINES))
    _one_of("precision", precision, PRECISIONS)
    _one_of("statistics", statistics, ("auto", "batch", "source"))
    _one_of("objective", objective, ("scaled", "literal"))
    check_aggregate(aggregate)
    multipliers = lr_multipliers(particles, lr_spread, lr_span)
    resolved = resolve_method(method, preset)
    optimizers = resolve_optimizers(optimizer, particles)
    seeds = _seeds(seed, populations)
    rates, origin = _explicit_rates(
        optimizers, lr, multipliers, populations or 1, each=not isinstance(optimizer, str | Optimizer)
    )
    looks, diversifier = resolve_lenses(lenses), resolve_diversity(diversity)
    if diversifier.needs_input_gradient and looks.differ(particles):
        raise ConfigError(
            f"lenses: got different ones with diversity {diversifier.name!r}, which compares images pixel by pixel; "
            "allowed are equal lenses, or another diversity."
        )
    config = Config(
        method=resolved,
        particles=particles,
        diversity=diversifier,
        optimizers=optimizers,
        learning_rates=rates,
        lr_origin=origin,
        views=resolve_views(views),
        lenses=looks,
        aggregate=aggregate,
        layers=choose_layers(model, targets, exclude),
        engine=engine,
        precision=precision,
        particles_at_once=particles_at_once,
        statistics=resolved.statistics if statistics == "auto" else statistics,  # type: ignore[arg-type]
        objective=objective,
        seed=seeds,
        shared_noise=shared_noise,
        lr_spread=lr_spread,
        lr_span=lr_span,
        populations=populations,
        num_classes=num_classes,
        batch_size=batch_size,
    )
    return Adapted(model, config)


def load(path: str | PathLike[str], model: nn.Module, **changes: Any) -> Adapted:
    """Brings back an adapter from ``Adapted.save``.

    Args:
        path: the state file.
        model: the same source model.
        changes: arguments of ``adapt`` that a file cannot hold (a method with a callable or with Fisher information),
            or that may differ on this machine (``engine``).
    """
    if not isinstance(path, str | PathLike):
        raise StateError(f"path: got {type(path).__name__}; allowed is the path of a file written by Adapted.save.")
    tensors, header = read(Path(path))
    stored = dict(header["config"])
    stand_ins = {"method": {"name": "source"}, "diversity": {"name": "none"}, "views": "none", "lenses": "none"}
    stored.update({part: value for part, value in stand_ins.items() if part in changes})
    adapted = adapt(model, **{**arguments_from(stored), **changes})
    check_source(adapted, header, Path(path))
    if "lr" in changes:
        tensors["learning_rates"] = adapted.learning_rates
    adapted.load_state_dict({name: value.to(adapted.theta.device) for name, value in tensors.items()})
    if "lr" not in changes:
        adapted.config = replace(adapted.config, lr_origin=stored["lr_origin"])
    adapted.totals = Totals.from_plain(header["totals"])
    return adapted


def _explicit_rates(
    optimizers: tuple[Optimizer, ...],
    lr: float | Sequence[float] | None,
    multipliers: Sequence[float],
    populations: int,
    *,
    each: bool,
) -> tuple[tuple[float, ...] | None, str]:
    """Learning rates the user gave: one per particle is taken as it is, a common one is spread."""
    particles = len(optimizers)
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
        return None, "reference rule, at the first batch"
    elif any(value is None for value in own) and lr is None:
        raise ConfigError("optimizer: some have an lr and some have none; allowed are all or none, or lr=...")
    else:
        if lr is not None and any(value is not None for value in own):
            raise ConfigError(f"lr: got {lr!r} beside an optimizer with its own lr; allowed is one of the two.")
        common = [float(lr) if value is None else value for value in own]  # type: ignore[arg-type]
        exact = each and all(value is not None for value in own)
        one = tuple(value * (1.0 if exact else m) for value, m in zip(common, multipliers, strict=True))
        rates = one * populations
        origin = "the optimizers' own lr" if exact else "lr, times each particle's multiplier"
    if not all(0 <= rate < inf for rate in rates):
        raise ConfigError(f"lr: got {lr!r}; allowed are finite numbers >= 0.")
    return rates, origin


def _seeds(seed: object, populations: int | None) -> int | tuple[int, ...]:
    """One seed, or one per population."""
    if populations is None or isinstance(seed, int) or not isinstance(seed, Sequence):
        _whole_number("seed", seed, 0)
        return seed  # type: ignore[return-value]
    for one in seed:
        _whole_number("seed", one, 0)
    if len(seed) != populations:
        raise ConfigError(f"seed: got {len(seed)} for {populations} populations; allowed are one, or one each.")
    return tuple(seed)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _whole_number(argument: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{argument}: got {value!r}; allowed is a whole number >= {least}.")


def _one_of(argument: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ConfigError(f"{argument}: got {value!r}; allowed are {list(allowed)}.")
