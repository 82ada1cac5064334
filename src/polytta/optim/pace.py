r"""Learning rates relative to the model: how far a step may go instead of how long it is.

    ηᵢ = paceᵢ / max(ḡ, |gᵢ|²),     ḡ = mean of |g|² over the first steps of the stream, of all particles

To first order a step of SGD changes the loss by η |g|², so a pace is that change in nats: it means the same on a ViT and
on a ResNet, whose gradients differ by a factor of ten, and at any batch size. ḡ is found without labels while the stream
begins and then stays, or a particle whose gradients vanish in collapse would go faster and faster. A single gradient far
above the mean goes no further than the mean one.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from polytta.optim.base import Slots

STEPS = 64
"""Steps of each particle that ḡ is the mean of."""
_LEAST = 1e-12


def begin(theta: Tensor) -> Slots:
    """State before the first step of (R, P) particles."""
    return {"square": theta.new_zeros(theta.shape[0]), "count": theta.new_zeros(theta.shape[0])}


def paced(
    pace: Tensor, state: Mapping[str, Tensor], direction: Tensor, moves: Tensor, populations: int
) -> tuple[Tensor, Slots]:
    """(R,) learning rates of the particles that move along (R, P) directions, and the state after it."""
    square = direction.square().sum(dim=1)
    counted = moves & (state["count"] < STEPS)
    total = state["square"] + torch.where(counted, square, 0.0)
    count = state["count"] + counted.to(square.dtype)
    # Particles of a population share the mean, which is then known five times as fast.
    summed = [values.unflatten(0, (populations, -1)).sum(dim=1, keepdim=True) for values in (total, count)]
    mean = (summed[0] / summed[1].clamp(min=1)).expand(-1, square.shape[0] // populations).flatten()
    rates = pace.to(square.dtype) / torch.maximum(mean, square).clamp(min=_LEAST)
    return rates.to(pace.dtype), {"square": total, "count": count}


def mean_square(state: Mapping[str, Tensor], populations: int) -> Tensor:
    """(R,) ḡ of each particle's population; NaN before the first step."""
    summed = [values.unflatten(0, (populations, -1)).sum(dim=1, keepdim=True) for values in state.values()]
    return (summed[0] / summed[1]).expand(-1, state["count"].shape[0] // populations).flatten()
