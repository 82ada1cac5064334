"""``polytta attack``."""

from dataclasses import dataclass
from typing import Any

import torch

from polytta.lab.attack import ATTACKS, Attack, Outcome, as_table, attacked
from polytta.lab.attack.material import open_images
from polytta.lab.pages.tables import as_text

_RECOMMENDED = "recommended"


@dataclass(frozen=True)
class AttackCommand:
    """Attack an adapting model, with its guard and without: what streams can do to it, and what is left afterwards."""

    models: tuple[str, ...] = ("bundled/cifar10_resnet_gn", "bundled/cifar10_resnet_bn")
    """Source models, as NAME or NAME=FILE with the weights; module:function for one's own."""
    dataset: str = "bundled"
    """Honest images with labels: bundled, a folder of images, or NAME=PATH, as in polytta bench."""
    attacks: tuple[str, ...] = tuple(ATTACKS)
    """clean, nan, constant, noise, one-class, label-shift, bystanders, neighbours, poison."""
    methods: tuple[str, ...] = ("tent", "deyo")
    """Base methods, one particle each; recommended is the population of polytta.adapt(model)."""
    lr: float | None = None
    """Learning rate; by default that of the reference rule."""
    statistics: str = "auto"
    """What BatchNorm layers use: auto, batch, source, blend or median."""
    guards: tuple[str, ...] = ("off", "default")
    """Guards to compare: off, default, strict."""
    batch_size: int = 32
    """Images in a batch."""
    steps: int = 20
    """Batches of the attack."""
    images: int = 600
    """Honest images, of which the attack is made."""
    judged_on: int = 200
    """Of them, images that are kept apart, to judge the model on afterwards."""
    fraction: float = 0.2
    """Of a batch that is the attacker's, where other people's images are in it."""
    rounds: int = 4
    """Steps of gradient ascent for every batch that is made."""
    seed: int = 0
    """Of what is drawn."""

    def run(self) -> None:
        """Runs all attacks against all models and methods, and prints a table for each."""
        for model in self.models:
            source, x, labels = open_images(model, self.dataset, self.images, self.seed)
            for method in self.methods:
                found: list[Outcome] = []
                for name in self.attacks:
                    attack = Attack(
                        name=name,
                        settings=self._settings(method),
                        guards=self.guards,
                        batch_size=self.batch_size,
                        steps=self.steps,
                        fraction=self.fraction,
                        rounds=self.rounds,
                        rate=1e-3 if self.lr is None else self.lr,
                        seed=self.seed,
                    )
                    found += attacked(source, x, torch.from_numpy(labels), attack, judged_on=self.judged_on)
                print(f"\n{model}, {method}\n{as_text(as_table(found))}", flush=True)

    def _settings(self, method: str) -> dict[str, Any]:
        if method == _RECOMMENDED:
            return {} if self.lr is None else {"preset": _RECOMMENDED, "lr": (0.0, self.lr)}
        return {"method": method, "particles": 1, "lr": self.lr, "statistics": self.statistics}
