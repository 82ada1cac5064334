"""Attacks by name: what a model is given to see before, or while, it is judged on honest images."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from polytta.lab.attack.crafted import Attacker


@dataclass(frozen=True)
class Material:
    """What attacks are made of.

    Attributes:
        x: (N, ...) honest, preprocessed images.
        labels: (N,) their classes.
        batch_size: of the stream.
        steps: batches of the attack.
        fraction: of a batch that is the attacker's, where others' images are in it.
        attacker: makes images against the model.
        seed: of what is drawn.
    """

    x: Tensor
    labels: Tensor
    batch_size: int
    steps: int
    fraction: float
    attacker: Attacker
    seed: int = 0

    def drawn(self, generator: torch.Generator, among: Tensor | None = None) -> Tensor:
        """Places of a batch of honest images, of some of them or of all."""
        places = torch.arange(len(self.x)) if among is None else among
        again = -(-self.batch_size // len(places))
        return torch.cat([places[torch.randperm(len(places), generator=generator)] for _ in range(again)])[
            : self.batch_size
        ]


@dataclass(frozen=True)
class Step:
    """One batch of an attack.

    Attributes:
        x: (B, ...) images.
        labels: (B,) classes, -1 of the attacker's images, on which nobody is judged.
    """

    x: Tensor
    labels: Tensor


Attack = Callable[[Material], Iterator[Step]]


def _batches(material: Material) -> Iterator[tuple[torch.Generator, Tensor]]:
    generator = torch.Generator().manual_seed(material.seed)
    for _ in range(material.steps):
        yield generator, material.drawn(generator)


def clean(material: Material) -> Iterator[Step]:
    """No attack."""
    for _, places in _batches(material):
        yield Step(material.x[places], material.labels[places])


def not_finite(material: Material) -> Iterator[Step]:
    """Images of NaN, infinity and absurd values among honest ones."""
    for generator, places in _batches(material):
        x, labels = material.x[places].clone(), material.labels[places].clone()
        for value in (torch.nan, torch.inf, -torch.inf, 1e30):
            place = int(torch.randint(len(x), (1,), generator=generator))
            x[place], labels[place] = value, -1
        yield Step(x, labels)


def constant(material: Material) -> Iterator[Step]:
    """The same flat image again and again."""
    flat = material.x[:1].flatten(2).mean(dim=2).reshape(1, material.x.shape[1], *[1] * (material.x.dim() - 2))
    nobody = torch.full((material.batch_size,), -1)
    for _ in range(material.steps):
        yield Step(flat.expand(material.batch_size, *material.x.shape[1:]).clone(), nobody)


def noise(material: Material) -> Iterator[Step]:
    """Images of noise."""
    nobody = torch.full((material.batch_size,), -1)
    for generator, _ in _batches(material):
        yield Step(torch.randn(material.batch_size, *material.x.shape[1:], generator=generator), nobody)


def one_class(material: Material) -> Iterator[Step]:
    """Honest images, all of one class."""
    chosen = torch.nonzero(material.labels == material.labels[0]).flatten()
    for generator, _ in _batches(material):
        places = material.drawn(generator, chosen)
        yield Step(material.x[places], material.labels[places])


def in_turn(material: Material) -> Iterator[Step]:
    """Honest images, one class after the other: infinite label shift."""
    order = torch.argsort(material.labels, stable=True)
    for number in range(material.steps):
        places = order[torch.arange(number * material.batch_size, (number + 1) * material.batch_size) % len(order)]
        yield Step(material.x[places], material.labels[places])


def bystanders(material: Material) -> Iterator[Step]:
    """The batches of ``neighbours`` as they were before the attacker changed his part: what it is compared with."""
    most = max(1, round(material.fraction * material.batch_size))
    for _, places in _batches(material):
        benign, own = places[most:], places[:most]
        labels = torch.cat([material.labels[benign], torch.full((most,), -1)])
        yield Step(torch.cat([material.x[benign], material.x[own]]), labels)


def neighbours(material: Material) -> Iterator[Step]:
    """A part of each batch made so that the others in it are misread."""
    for step in bystanders(material):
        honest = step.labels >= 0
        x, labels = step.x[honest], step.labels[honest]
        crafted = material.attacker.against(step.x[~honest], x, labels, together=True)
        yield Step(torch.cat([x, crafted]), step.labels)


def poison(material: Material) -> Iterator[Step]:
    """Batches made so that whoever learns from them misreads what comes later."""
    nobody = torch.full((material.batch_size,), -1)
    for generator, places in _batches(material):
        later = material.drawn(generator)
        made = material.attacker.against(material.x[places], material.x[later], material.labels[later], together=False)
        yield Step(made, nobody)


ATTACKS: dict[str, Attack] = {
    "clean": clean,
    "nan": not_finite,
    "constant": constant,
    "noise": noise,
    "one-class": one_class,
    "label-shift": in_turn,
    "bystanders": bystanders,
    "neighbours": neighbours,
    "poison": poison,
}
