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
from polytta.guard import require_images

View = Callable[[Tensor], Tensor]


def unchanged(x: Tensor) -> Tensor:
    """The batch as it came."""
    return x


def horizontal_flip(x: Tensor) -> Tensor:
    """Left and right exchanged."""
    require_images("horizontal_flip", x)
    return x.flip(-1)


def vertical_flip(x: Tensor) -> Tensor:
    """Top and bottom exchanged."""
    require_images("vertical_flip", x)
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

    def of(self, x: Tensor, *, to_predict: bool = False) -> list[Tensor]:
        """All views of a batch, or only those that a prediction needs."""
        wanted = self.transforms[:1] if to_predict and self.predict == "first" else self.transforms
        made = [view(x) for view in wanted]
        for view, image in zip(wanted, made, strict=True):
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
    "mirror": Views((unchanged, horizontal_flip), predict="mean"),
}


def resolve_views(spec: str | Sequence[View] | Views) -> Views:
    """Views from a name, a list of callables, or an object."""
    if isinstance(spec, Views):
        resolved = spec
    elif isinstance(spec, str):
        if spec not in VIEWS:
            raise ConfigError(f"views: got {spec!r}; allowed are {sorted(VIEWS)}, callables, or polytta.views.Views.")
        resolved = VIEWS[spec]
    elif isinstance(spec, Sequence):
        resolved = Views(tuple(spec))  # type: ignore[arg-type]
    else:
        raise ConfigError(f"views: got {spec!r}; allowed are {sorted(VIEWS)}, callables, or polytta.views.Views.")
    resolved.validate()
    return resolved
