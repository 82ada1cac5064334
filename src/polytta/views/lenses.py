r"""Lenses: each particle looks at the whole stream in its own way.

    pᵢ = f(lensᵢ(x); θᵢ)

What a shift did to the images is unknown: noise, which a look from farther away averages out, or blur, which a sharper
look undoes. No single look is right for all of it, so every hypothesis keeps one of its own, learns through it, and
``aggregate="evidence"`` finds out without labels which of them see well. Lenses are fixed beforehand and the same for
every stream. Views (``polytta.views``) are another matter: versions of a batch that every particle learns from.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from polytta.views.specs import require_transforms
from polytta.views.transforms import (
    View,
    farther,
    horizontal_flip,
    much_farther,
    seen_through,
    sharper,
    unchanged,
)


@dataclass(frozen=True)
class Lenses:
    """One way to look per particle: fewer particles than lenses take the first ones, more start over.

    Attributes:
        transforms: callables (B, ...) -> (B, ...).
    """

    transforms: tuple[View, ...] = (unchanged,)

    def validate(self) -> None:
        """Raises ConfigError when there is nothing to see."""
        require_transforms("lenses", self.transforms)

    def of_particle(self, number: int) -> View:
        """The lens of a particle."""
        return self.transforms[number % len(self.transforms)]

    def differ(self, particles: int) -> bool:
        """Whether that many particles see different things."""
        return any(self.of_particle(number) is not self.transforms[0] for number in range(particles))

    def of(self, x: Tensor, particles: int) -> Tensor:
        """(K, B, ...) what each particle sees; without copying when all see the same."""
        seen = seen_through("lenses", self.transforms[:particles], x)
        if len(seen) == 1:
            return seen[0].unsqueeze(0).expand(particles, *x.shape)
        return torch.stack([seen[number % len(seen)] for number in range(particles)])


LENSES: dict[str, Lenses] = {
    "none": Lenses(),
    # The most useful first: three particles see as it is, from farther away and sharper.
    "optics": Lenses((unchanged, farther, sharper, horizontal_flip, much_farther)),
}
