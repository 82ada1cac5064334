"""How the particles stand: at which rates they learn, and who is trusted how much."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from polytta.aggregate import Aggregate, evidence
from polytta.engine.state import PopulationState
from polytta.engine.step import detail_of
from polytta.optim import pace
from polytta.report import Hypothesis
from polytta.settings import Config, Settings


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


def answered(aggregate: Aggregate, logits: Tensor, known: evidence.State, images: Tensor) -> tuple[Tensor, Tensor]:
    """(G, B, C) answers from logits (G, K, B, C) to images (G, B, ...), and (G, B, K) what each particle counts."""
    detail = detail_of(images, aggregate)
    if known:
        known = evidence.with_batch(known, evidence.observe(known, logits.flatten(0, 1), detail))
    counted = aggregate.weights(known, detail, logits.shape[1]).to(torch.float64)
    return aggregate.combine(logits, known, detail), counted / counted.sum(dim=-1, keepdim=True)


def asleep(marks: Tensor, populations: int) -> frozenset[int]:
    """Numbers of the particles that sleep in every population, by their marks (G·K,)."""
    everywhere = marks.unflatten(0, (populations, -1)).bool().all(dim=0).tolist()
    return frozenset(number for number, rests in enumerate(everywhere) if rests)


def settings(config: Config, state: PopulationState) -> Settings:
    """All options as they stand, with what the first batch has decided."""
    known = replace(config.settings, num_classes=state.num_classes or None)
    if not state.has_rates:
        return known
    rates = tuple(state.learning_rates.tolist())
    return replace(known, pace=rates) if state.pace else replace(known, lr=rates)


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
