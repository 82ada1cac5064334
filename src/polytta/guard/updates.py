"""Nothing non-finite enters a particle: not by its direction, not by its optimizer."""

from collections.abc import Mapping

import torch
from torch import Tensor


def usable_direction(direction: Tensor, learners: Tensor) -> tuple[Tensor, Tensor]:
    """The direction (K, P), zeros for particles that learn nothing or have non-finite values, and who is healthy."""
    finite = direction.isfinite().all(dim=1)
    return torch.where((learners & finite).unsqueeze(1), direction, torch.zeros_like(direction)), finite


def length_of(direction: Tensor, broken: Tensor) -> Tensor:
    """(K,) lengths of a usable direction (K, P), infinite for the particles (K,) whose own was broken."""
    return torch.linalg.vector_norm(direction.detach(), dim=1).masked_fill(broken, torch.inf)


def clipped(direction: Tensor, most: float) -> Tensor:
    """The direction (K, P), no row of it longer than that; shorter ones as they are."""
    length = direction.norm(dim=1, keepdim=True)
    return torch.where(length > most, direction * (most / length), direction)


def finite_rows_of(wanted: Tensor, before: Tensor) -> Tensor:
    """Parameters (K, P) where all of a particle's are finite, those of before elsewhere."""
    return torch.where(wanted.isfinite().all(dim=1, keepdim=True), wanted, before)


def accepted(
    moves: Tensor,
    before: tuple[Tensor, Mapping[str, Tensor]],
    after: tuple[Tensor, Mapping[str, Tensor]],
) -> tuple[Tensor, dict[str, Tensor]]:
    """Parameters and optimizer state: new where a particle (K,) moves and all it has stays finite, old elsewhere."""
    (theta, slots), (moved, stepped) = before, after
    finite = torch.stack([values.isfinite().all(dim=1) for values in (moved, *stepped.values())]).all(dim=0)
    keep = (moves & finite).unsqueeze(1)
    return (
        torch.where(keep, moved, theta),
        {name: torch.where(keep, values, slots[name]) for name, values in stepped.items()},
    )
