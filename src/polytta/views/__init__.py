"""The input level: which versions of a batch particles learn from.

With views V the loss of a particle is Σ_v ℓ(v(X); θ), each view forwarded, filtered and shuffled by itself (the paper's
Aug rows use V = {x, horizontal flip, vertical flip}). The first view is the batch as it came.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from polytta.errors import ConfigError

View = Callable[[Tensor], Tensor]


def unchanged(x: Tensor) -> Tensor:
    """The batch as it came."""
    return x


def horizontal_flip(x: Tensor) -> Tensor:
    """Left and right exchanged."""
    return x.flip(-1)


def vertical_flip(x: Tensor) -> Tensor:
    """Top and bottom exchanged."""
    return x.flip(-2)


@dataclass(frozen=True)
class Views:
    """Versions of a batch.

    Attributes:
        transforms: callables (B, ...) -> (B, ...).
        predict: "first" answers with the prediction on the first view, "mean" with the mean over views.
    """

    transforms: tuple[View, ...] = (unchanged,)
    predict: Literal["first", "mean"] = "first"

    def validate(self) -> None:
        """Raises ConfigError when there is nothing to see."""
        if not self.transforms or not all(callable(view) for view in self.transforms):
            raise ConfigError(f"views: got {self.transforms!r}; allowed is at least one callable.")
        if self.predict not in ("first", "mean"):
            raise ConfigError(f"views: predict={self.predict!r}; allowed are 'first' and 'mean'.")

    def of(self, x: Tensor) -> list[Tensor]:
        """All views of a batch."""
        made = [view(x) for view in self.transforms]
        for view, image in zip(self.transforms, made, strict=True):
            if image.shape != x.shape:
                raise ConfigError(
                    f"views: {view!r} turns {tuple(x.shape)} into {tuple(image.shape)}; allowed is the same shape."
                )
        return made

    def combine(self, logits: Sequence[Tensor]) -> Tensor:
        """(K, B, C) logits to predict from, given those of all views."""
        if self.predict == "first" or len(logits) == 1:
            return logits[0]
        return torch.stack([one.log_softmax(dim=-1) for one in logits]).logsumexp(dim=0)


VIEWS: dict[str, Views] = {
    "none": Views(),
    "flips": Views((unchanged, horizontal_flip, vertical_flip)),
}


def resolve_views(spec: str | Sequence[View] | Views) -> Views:
    """Views from a name, a list of callables, or an object."""
    if isinstance(spec, Views):
        resolved = spec
    elif isinstance(spec, str):
        if spec not in VIEWS:
            raise ConfigError(f"views: got {spec!r}; allowed are {sorted(VIEWS)}, callables, or polytta.views.Views.")
        resolved = VIEWS[spec]
    else:
        resolved = Views(tuple(spec))
    resolved.validate()
    return resolved
