"""The input level: which versions of a batch particles learn from.

With views V the loss of a particle is Σ_v ℓ(v(X); θ), each view forwarded, filtered and shuffled by itself (the paper's
Aug rows use V = {x, horizontal flip, vertical flip}). The first view is the batch as it came.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from polytta.errors import ConfigError
from polytta.views.specs import require_transforms
from polytta.views.transforms import View, horizontal_flip, seen_through, unchanged, vertical_flip


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
        require_transforms("views", self.transforms)
        if self.predict not in ("first", "mean"):
            raise ConfigError(f"views: got predict={self.predict!r}; allowed are 'first' and 'mean'.")

    def of(self, x: Tensor, *, to_predict: bool = False) -> list[Tensor]:
        """All views of a batch, or only those that a prediction needs."""
        wanted = self.transforms[:1] if to_predict and self.predict == "first" else self.transforms
        return seen_through("views", wanted, x)

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
