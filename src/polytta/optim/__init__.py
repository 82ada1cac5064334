"""Optimizers over a population: one file each, and the rule that picks learning rates."""

from collections.abc import Mapping, Sequence
from typing import Any

from polytta.errors import ConfigError
from polytta.optim.adam import Adam as Adam
from polytta.optim.adamw import AdamW as AdamW
from polytta.optim.base import Optimizer as Optimizer
from polytta.optim.base import Rows as Rows
from polytta.optim.base import Slots as Slots
from polytta.optim.population import PopulationOptimizer as PopulationOptimizer
from polytta.optim.sgd import SGD as SGD
from polytta.roles.registry import Registry

OPTIMIZERS = Registry("optimizer", Optimizer, (SGD, Adam, AdamW))
register_optimizer = OPTIMIZERS.register

OptimizerSpec = str | Mapping[str, Any] | Optimizer


def is_one_optimizer(spec: object) -> bool:
    """Whether a spec means one optimizer for all particles, not one each."""
    return isinstance(spec, str | Mapping | Optimizer | type)


def resolve_optimizers(spec: object, particles: int) -> tuple[Optimizer, ...]:
    """One optimizer per particle from one spec or K of them."""
    if is_one_optimizer(spec):
        return (OPTIMIZERS.make(spec),) * particles
    if not isinstance(spec, Sequence):
        raise ConfigError(
            f"optimizer: got {spec!r}; allowed are {sorted(OPTIMIZERS)}, polytta.optim objects, or K of them."
        )
    if len(spec) != particles:
        raise ConfigError(
            f"optimizer: got {len(spec)} for {particles} particles; allowed are one, or one per particle."
        )
    return tuple(OPTIMIZERS.make(one) for one in spec)
