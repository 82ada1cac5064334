"""Settings as they are for one model: every part an object, every default decided that can be without a batch."""

from dataclasses import dataclass
from typing import Literal

from polytta.aggregate import Aggregate
from polytta.diversity import Diversifier
from polytta.methods import Method
from polytta.optim import Optimizer
from polytta.optim.rule import lr_multipliers, reference_lr
from polytta.settings.settings import Settings
from polytta.views import Lenses, Views


@dataclass(frozen=True)
class Rates:
    """Learning rates, one per particle of all populations, and where they come from, in words."""

    values: tuple[float, ...]
    origin: str


@dataclass(frozen=True)
class Config:
    """What an adapter does. It never changes; what a stream decides is in the adapter's state.

    Attributes:
        settings: all options with their parts as objects, which adapt an equal model equally.
        method: the base method.
        diversity: how particles interact.
        optimizers: one per particle.
        views: versions of the batch particles learn from.
        lenses: how each particle looks at the images.
        aggregate: how K predictions become one.
        layers: names of the adapted norm layers.
        statistics: what BatchNorm layers use.
        rates: the learning rates the user gave; None when the reference rule decides at the first batch.
    """

    settings: Settings
    method: Method
    diversity: Diversifier
    optimizers: tuple[Optimizer, ...]
    views: Views
    lenses: Lenses
    aggregate: Aggregate
    layers: tuple[str, ...]
    statistics: Literal["batch", "source"]
    rates: Rates | None

    @property
    def particles(self) -> int:
        """K."""
        return self.settings.particles

    @property
    def populations(self) -> int:
        """G."""
        return self.settings.populations or 1

    @property
    def rows(self) -> int:
        """Particles of all populations, G·K."""
        return self.particles * self.populations

    @property
    def noise_owners(self) -> list[tuple[int, int]]:
        """(seed, number of the particle) that decide each row's random numbers."""
        seed = self.settings.seed
        seeds = (seed,) * self.populations if isinstance(seed, int) else tuple(seed)
        return [(one, 0 if self.settings.shared_noise else number) for one in seeds for number in range(self.particles)]

    def reference_rates(self, model_family: str, batch: int) -> Rates:
        """Learning rates by the reference rule, for a model of that family and a first batch of that size."""
        batch = self.settings.batch_size or batch
        base = reference_lr(model_family, batch, self.method.single_image_lr_factor)
        multipliers = lr_multipliers(self.particles, self.settings.lr_spread, self.settings.lr_span)
        each = zip(self.optimizers, multipliers, strict=True)
        one = tuple(base * optimizer.relative_lr * factor for optimizer, factor in each)
        origin = f"reference rule for a {model_family} model at batch size {batch}: {base:g} for SGD"
        return Rates(one * self.populations, origin)
