r"""Learning rates relative to the model: how far a step goes instead of how long it is.

    ηᵢ = paceᵢ · ℓ̄ / max(ḡ, |gᵢ|²),     ℓ̄, ḡ = means of |ℓ| and |g|² over the first steps of the stream

To first order a step of SGD lowers the loss by η |g|², so a pace is the share of the loss that a mean step removes
(Polyak's step has pace 1). It is a number without a unit: it means the same on a ViT and on a ResNet, among ten classes
and a thousand, at any batch size and for any weighting of samples. Both means are found without labels while the stream
begins, from all particles, and then stay: else a particle whose gradients vanish in collapse would go faster and
faster. A single gradient far above the mean goes no further than the mean one.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from polytta.optim.base import Slots

STEPS = 64
"""Steps of each particle that the means are over."""
_LEAST = 1e-12


def begin(theta: Tensor) -> Slots:
    """State before the first step of (R, P) particles: sums over steps, and how many there were."""
    return {name: theta.new_zeros(theta.shape[0]) for name in ("square", "loss", "count")}


def paced(
    pace: Tensor, state: Mapping[str, Tensor], direction: Tensor, losses: Tensor, moves: Tensor, populations: int
) -> tuple[Tensor, Slots]:
    """(R,) learning rates of the particles that move along (R, P) directions, and the state after it."""
    square = direction.square().sum(dim=1)
    counted = moves & (state["count"] < STEPS)
    found = {
        "square": state["square"] + torch.where(counted, square, 0.0),
        "loss": state["loss"] + torch.where(counted, losses.abs().to(square.dtype), 0.0),
        "count": state["count"] + counted.to(square.dtype),
    }
    mean, loss = _means(found, populations)
    rates = pace.to(square.dtype) * loss / torch.maximum(mean, square).clamp(min=_LEAST)
    return rates.to(pace.dtype), found


def typical(pace: Tensor, state: Mapping[str, Tensor], populations: int) -> Tensor:
    """(R,) learning rates of a step with a mean gradient; NaN before the first."""
    mean, loss = _means(state, populations)
    return torch.where(pace == 0, pace, pace * (loss / mean).to(pace.dtype))


def _means(state: Mapping[str, Tensor], populations: int) -> tuple[Tensor, Tensor]:
    """(R,) ḡ and ℓ̄ of each particle's population."""
    square, loss, count = (
        state[name].unflatten(0, (populations, -1)).sum(dim=1, keepdim=True) for name in ("square", "loss", "count")
    )
    each = state["count"].shape[0] // populations
    means = [(total / count.clamp(min=1)).expand(-1, each).flatten() for total in (square, loss)]
    return means[0], means[1]
