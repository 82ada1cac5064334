"""How the particles stand: at which rates they learn, and who is trusted how much."""

from collections.abc import Sequence

import torch
from torch import Tensor

from polytta.aggregate import evidence
from polytta.engine.state import PopulationState
from polytta.optim import pace
from polytta.report import Hypothesis
from polytta.settings import Config


def learning_rates(state: PopulationState, squads: Sequence[Tensor], populations: int) -> Tensor:
    """(G·K,) one per particle, of paces those of a mean gradient; losses of different squads have no common mean."""
    rates, found = state.learning_rates, state.pace
    if not found:
        return rates
    typical = rates.clone()
    for rows in squads:
        own = {name: value[rows] for name, value in found.items()}
        typical[rows] = pace.typical(rates[rows], own, populations)
    return typical


def equal_weights(logits: Tensor) -> Tensor:
    """(G, B, K) of logits (G, K, B, C)."""
    populations, particles, images, _ = logits.shape
    return torch.full((populations, images, particles), 1 / particles, dtype=torch.float64, device=logits.device)


def weights(known: evidence.State) -> Tensor | None:
    """(K,) what each particle of one population counts on images like those of late; None where all count alike."""
    return evidence.standing(known)[0] if "fine_images" in known else None


def hypotheses(
    config: Config, weighed: Tensor | None, asleep: frozenset[int], restarts: Sequence[int]
) -> tuple[Hypothesis, ...]:
    """What is known of the particles of one population."""
    count, silent = config.particles, config.never_learn | asleep
    shares = [1 / count] * count if weighed is None else weighed.tolist()
    restarted = restarts or (0,) * count
    return tuple(
        Hypothesis(n, axes, shares[n], n not in silent and config.methods[n].adapts, restarted[n])
        for n, axes in enumerate(config.axes())
    )
