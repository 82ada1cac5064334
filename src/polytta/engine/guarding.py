"""The guard inside a step: looks at the particles after it; those who went back start anew with all they have."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from polytta.engine.state import PopulationState
from polytta.guard import Checkup, Examiner


class Guarding:
    """What the guard needs besides state and batch.

    Args:
        examiner: looks at the particles.
        begun: the state before the first batch.
    """

    def __init__(self, examiner: Examiner, begun: PopulationState) -> None:
        self._examiner, self._beginnings = examiner, begun.method
        self._own_rows = torch.arange(examiner.twins.shape[0], device=examiner.twins.device)
        # Read here, once, and never in a step.
        self._has_twins = not torch.equal(examiner.twins, self._own_rows)
        # A number of Python's would be made a tensor by every operation.
        known = (*begun.optimizer.values(), *begun.method.values())
        self._nothing = {value.dtype: value.new_zeros(()) for value in known}

    def __call__(
        self, before: PopulationState, after: PopulationState, logits: Tensor, restarted: Tensor | None
    ) -> tuple[PopulationState, Checkup]:
        """The state as it goes on, and what was found; None for who restarted where nobody ever does."""
        found = self._examiner(before.guard, before.theta, after.theta, logits, after.step, restarted)
        if not found.acts:
            return replace(after, guard=found.memory), found
        slower = after.learning_rates * self._examiner.policy.slowdown
        return (
            replace(
                after,
                theta=found.theta,
                learning_rates=torch.where(found.slowed, slower, after.learning_rates),
                optimizer=self._taken(found.recovered, after.optimizer, {}),
                method=self._taken(found.recovered, after.method, self._beginnings),
                evidence=self._like_twins(found.recovered, after.evidence),
                guard=found.memory,
            ),
            found,
        )

    def _taken(self, rows: Tensor, values: Mapping[str, Tensor], fresh: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Named tensors, the rows (R,) marked as they were before the first batch."""
        taken = {}
        for name, value in values.items():
            begun = fresh.get(name)
            # A window of images has no shape before the first batch.
            begun = self._nothing[value.dtype] if begun is None or begun.shape != value.shape else begun
            taken[name] = torch.where(_along(rows, value), begun, value)
        return taken

    def _like_twins(self, rows: Tensor, values: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Evidence of those who went back: that of whoever is as they are now."""
        if not self._has_twins:
            return values
        whose = torch.where(rows, self._examiner.twins, self._own_rows)
        return {name: value if value.dim() == 0 else value[whose] for name, value in values.items()}


def _along(rows: Tensor, value: Tensor) -> Tensor:
    return rows.reshape(-1, *[1] * (value.dim() - 1))
