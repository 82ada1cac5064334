"""The parts that a step joins, the same from batch to batch."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from polytta.diversity import Diversifier
from polytta.guard import Default
from polytta.methods import Method
from polytta.optim import PopulationOptimizer
from polytta.roles.noise import keys
from polytta.settings import Config
from polytta.views import Lenses, Views


@dataclass(frozen=True)
class Parts:
    """What a step of some particles is made of, besides an engine.

    Attributes:
        method: the base method.
        method_prefix: before the names of its tensors, where a population has several methods.
        method_names: those names.
        diversifier: how particles interact.
        optimizer: how they move.
        relative: whether learning rates are paces (``polytta.optim.pace``).
        views: versions of the batch to learn from.
        lenses: how each particle looks at them.
        divisor: of directions: K for the paper's literal objective, else 1.
        episodic: whether every batch starts from the source model.
        steps: of learning from a batch.
        populations: G.
        noise_keys: (views, rows) keys of the random numbers.
        source: (P,) source parameters.
        network: the frozen source network.
        clip: largest norm of a gradient; None for any.
        text: (rows, C, D) features of each particle's own template; None where answers are as the network gives them.
    """

    method: Method
    method_prefix: str
    method_names: Sequence[str]
    diversifier: Diversifier
    optimizer: PopulationOptimizer
    relative: bool
    views: Views
    lenses: Lenses
    divisor: int
    episodic: bool
    steps: int
    populations: int
    noise_keys: Tensor
    source: Tensor
    network: nn.Module
    clip: float | None = None
    text: Tensor | None = None

    @classmethod
    def of(
        cls,
        config: Config,
        method: Method,
        numbers: Sequence[int],
        names: Sequence[str],
        source: Tensor,
        network: nn.Module,
    ) -> "Parts":
        """The parts of the particles of these numbers, in every population of an adapter."""
        owners = config.noise_owners
        text = None
        if config.templates is not None:
            known = network.get_buffer("text_features")
            text = known[[config.templates[number] for number in numbers] * config.populations]
        rows = [config.particles * g + number for g in range(config.populations) for number in numbers]
        return cls(
            method=method,
            method_prefix=config.method_prefix(method),
            method_names=tuple(names),
            diversifier=config.diversity,
            optimizer=PopulationOptimizer([config.optimizers[n] for n in numbers] * config.populations),
            relative=config.rates is not None and config.rates.relative,
            views=config.views,
            lenses=config.lenses.of_particles(numbers),
            divisor=config.particles if config.settings.objective == "literal" else 1,
            episodic=config.is_episodic(method),
            steps=config.settings.steps,
            populations=config.populations,
            noise_keys=keys([owners[row] for row in rows], len(config.views.transforms), source.device),
            source=source,
            network=network,
            clip=config.guard.clip if isinstance(config.guard, Default) else None,
            text=text,
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
