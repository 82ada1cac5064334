"""The parts that a step joins, the same from batch to batch."""

from dataclasses import dataclass

from torch import Tensor, nn

from polytta.aggregate import Aggregate
from polytta.diversity import Diversifier
from polytta.methods import Method
from polytta.optim import PopulationOptimizer
from polytta.roles.noise import keys
from polytta.settings import Config
from polytta.views import Lenses, Views


@dataclass(frozen=True)
class Parts:
    """What a step is made of, besides an engine.

    Attributes:
        method: the base method.
        diversifier: how particles interact.
        optimizer: how they move.
        views: versions of the batch to learn from.
        lenses: how each particle looks at them.
        aggregate: how they answer.
        divisor: of directions: K for the paper's literal objective, else 1.
        episodic: whether every batch starts from the source model.
        populations: G.
        noise_keys: (views, G·K) keys of the random numbers.
        source: (P,) source parameters.
        network: the frozen source network.
    """

    method: Method
    diversifier: Diversifier
    optimizer: PopulationOptimizer
    views: Views
    lenses: Lenses
    aggregate: Aggregate
    divisor: int
    episodic: bool
    populations: int
    noise_keys: Tensor
    source: Tensor
    network: nn.Module

    @classmethod
    def of(cls, config: Config, optimizer: PopulationOptimizer, source: Tensor, network: nn.Module) -> "Parts":
        """The parts of an adapter."""
        return cls(
            method=config.method,
            diversifier=config.diversity,
            optimizer=optimizer,
            views=config.views,
            lenses=config.lenses,
            aggregate=config.aggregate,
            divisor=config.particles if config.settings.objective == "literal" else 1,
            episodic=config.method.episodic,
            populations=config.populations,
            noise_keys=keys(config.noise_owners, len(config.views.transforms), source.device),
            source=source,
            network=network,
        )

    def seen(self, x: Tensor, particles: int, *, to_predict: bool, lensed: bool = True) -> list[Tensor]:
        """(G·K, B, ...) what particles see of batches (G, B, ...), for every view or for those a prediction needs."""
        lenses = self.lenses if lensed else Lenses()
        populations, batch = x.shape[:2]
        found = []
        for images in self.views.of(x.flatten(0, 1), to_predict=to_predict):
            looked = lenses.of(images, particles // populations)
            found.append(looked.unflatten(1, (populations, batch)).transpose(0, 1).flatten(0, 1))
        return found

    def through_lenses(self, images: Tensor) -> Tensor:
        """(G·K, B, ...) what particles see of images (G·K, B, ...) of their own."""
        populations, batch = self.populations, images.shape[1]
        looked = self.lenses.each(images.unflatten(0, (populations, -1)).transpose(0, 1).flatten(1, 2))
        return looked.unflatten(1, (populations, batch)).transpose(0, 1).flatten(0, 1)
