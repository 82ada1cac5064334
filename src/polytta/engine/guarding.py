"""The guard inside a step: looks at the particles after it; those who went back start anew with all they have."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from polytta.engine.state import PopulationState
from polytta.guard import Checkup, Default, examined


@dataclass(frozen=True)
class Guarding:
    """What the guard needs besides state and batch.

    Attributes:
        policy: what is allowed.
        learners: (G·K,) who may learn at all.
        twins: (G·K,) for each row the one that looks alike and never learns, or its own.
        weighed: (G·K,) whose answers evidence judges already.
        source: (P,) source parameters.
        beginnings: what the methods remember before the first batch.
    """

    policy: Default
    learners: Tensor
    twins: Tensor
    weighed: Tensor
    source: Tensor
    beginnings: Mapping[str, Tensor]

    def __call__(
        self, before: PopulationState, after: PopulationState, logits: Tensor, restarted: Tensor
    ) -> tuple[PopulationState, Checkup]:
        """The state as it goes on, and what was found."""
        found = examined(
            self.policy,
            before.guard,
            before.theta,
            after.theta,
            self.source,
            logits,
            after.step,
            learners=self.learners,
            twins=self.twins,
            weighed=self.weighed,
            restarted=restarted,
        )
        collapsed = found.recovered & (found.verdict > 0)
        return (
            replace(
                after,
                theta=found.theta,
                learning_rates=torch.where(
                    collapsed, after.learning_rates * self.policy.slowdown, after.learning_rates
                ),
                optimizer=self._taken(found.recovered, after.optimizer, {}),
                method=self._taken(found.recovered, after.method, self.beginnings),
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
            begun = torch.zeros_like(value) if begun is None or begun.shape != value.shape else begun
            taken[name] = torch.where(_along(rows, value), begun, value)
        return taken

    def _like_twins(self, rows: Tensor, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Evidence of those who went back: that of whoever is as they are now."""
        return {
            name: value if value.dim() == 0 else torch.where(_along(rows, value), value[self.twins], value)
            for name, value in values.items()
        }


def _along(rows: Tensor, value: Tensor) -> Tensor:
    return rows.reshape(-1, *[1] * (value.dim() - 1))
