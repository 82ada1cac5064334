r"""Lenses: each particle looks at the whole stream in its own way.

    pᵢ = f(lensᵢ(x); θᵢ)

What a shift did to the images is unknown: noise, which a look from farther away averages out, blur, which a sharper
look undoes, or haze, which a clearer one does. No single look is right for all of it, so every hypothesis keeps one of
its own, learns through it, and ``aggregate="evidence"`` finds out without labels which of them see well. Lenses are
fixed beforehand and the same for every stream. Input gradients are by the x that particles share, through their lenses.
Views (``polytta.views``) are another matter: versions of a batch that every particle learns from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from polytta.errors import ConfigError
from polytta.views.specs import require_transforms
from polytta.views.transforms import (
    View,
    clearer_mirrored,
    coarser,
    farther,
    horizontal_flip,
    much_farther,
    much_sharper,
    seen_through,
    sharper,
    unchanged,
)


@dataclass(frozen=True)
class Lenses:
    """One way to look per particle, or one for all: fewer particles than lenses take the first ones.

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

    def of_particles(self, numbers: Sequence[int]) -> "Lenses":
        """Those of some particles."""
        return Lenses(tuple(self.of_particle(number) for number in numbers))

    def differ(self, particles: int) -> bool:
        """Whether that many particles see different things."""
        return any(self.of_particle(number) is not self.transforms[0] for number in range(particles))

    def of(self, x: Tensor, particles: int) -> Tensor:
        """(K, B, ...) what each particle sees; without copying when all see the same."""
        lenses = [self.of_particle(number) for number in range(particles)]
        different = {id(lens): lens for lens in lenses}
        seen = dict(zip(different, seen_through("lenses", list(different.values()), x), strict=True))
        if len(different) == 1:
            return seen[id(lenses[0])].unsqueeze(0).expand(particles, *x.shape)
        return torch.stack([seen[id(lens)] for lens in lenses])

    def each(self, x: Tensor) -> Tensor:
        """(K, B, ...) what each particle sees of images (K, B, ...) of its own."""
        return torch.stack([seen_through("lenses", [self.of_particle(k)], own)[0] for k, own in enumerate(x)])

    @torch.enable_grad()
    def require_slopes(self, x: Tensor, particles: int, diversity: str, *, twice: bool) -> None:
        """Raises ConfigError for a lens through which a loss cannot be differentiated by the images (B, ...).

        Reads a value back, so it is for the first batch and not for every one.
        """
        for lens in self.transforms[:particles]:
            images, cause = x.detach().clone().requires_grad_(), None
            seen = seen_through("lenses", [lens], images)[0]
            try:
                reached = bool(_slope(seen, images, twice).any())
            except RuntimeError as error:
                reached, cause = False, error
            if not reached:
                raise ConfigError(
                    f"lenses: got {lens!r}, which has no {'second ' if twice else ''}derivative; allowed with "
                    f"diversity {diversity!r} are differentiable lenses, or one for all particles."
                ) from cause


def _slope(seen: Tensor, images: Tensor, twice: bool) -> Tensor:
    """A gradient by the images, of which a rounding lens leaves nothing."""
    # The same for all pixels, it would also vanish in lenses that take the mean away.
    uneven = torch.arange(seen.numel(), device=seen.device).sin().to(seen.dtype).reshape(seen.shape)
    slope = torch.autograd.grad(seen, images, uneven.requires_grad_(twice), create_graph=twice)[0]
    if twice:
        torch.autograd.grad(slope.sum(), uneven)
    return slope


LENSES: dict[str, Lenses] = {
    "none": Lenses(),
    # The most useful first: three particles see as it is, from farther away and sharper.
    "optics": Lenses((unchanged, farther, sharper, horizontal_flip, much_farther)),
    # Those of the recommended population.
    "sight": Lenses((unchanged, farther, much_sharper, clearer_mirrored, coarser)),
}
