"""Optimizers over a population: one file each, and the rule that picks learning rates."""

from collections.abc import Sequence

from polytta.errors import ConfigError
from polytta.optim.adam import Adam as Adam
from polytta.optim.adamw import AdamW as AdamW
from polytta.optim.base import Optimizer as Optimizer
from polytta.optim.population import PopulationOptimizer as PopulationOptimizer
from polytta.optim.sgd import SGD as SGD

OPTIMIZERS: dict[str, type[Optimizer]] = {optimizer.name: optimizer for optimizer in (SGD, Adam, AdamW)}

OptimizerSpec = str | Optimizer


def resolve_optimizers(spec: OptimizerSpec | Sequence[OptimizerSpec], particles: int) -> tuple[Optimizer, ...]:
    """One optimizer per particle from one spec or K of them."""
    if not isinstance(spec, str | Optimizer | Sequence):
        raise ConfigError(
            f"optimizer: got {spec!r}; allowed are {sorted(OPTIMIZERS)}, polytta.optim objects, or K of them."
        )
    specs = [spec] * particles if isinstance(spec, str | Optimizer) else list(spec)
    if len(specs) != particles:
        raise ConfigError(
            f"optimizer: got {len(specs)} for {particles} particles; allowed are one, or one per particle."
        )
    return tuple(_resolve(one) for one in specs)


def _resolve(spec: object) -> Optimizer:
    if isinstance(spec, str) and spec in OPTIMIZERS:
        return OPTIMIZERS[spec]()
    if isinstance(spec, Optimizer):
        spec.validate()
        return spec
    raise ConfigError(f"optimizer: got {spec!r}; allowed are {sorted(OPTIMIZERS)} or a polytta.optim object.")
