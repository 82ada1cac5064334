"""Everything a population carries from one batch to the next, as tensors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from polytta.aggregate import evidence

_GROUPS = ("optimizer", "pace", "method", "evidence", "guard")


@dataclass(frozen=True)
class PopulationState:
    """The state of G·K particles.

    Attributes:
        theta: (G·K, P) parameters.
        learning_rates: (G·K,) in float64, or paces; NaN until the first batch when the reference rule decides.
        step: () number of steps taken; random numbers depend on it.
        optimizer: the optimizers' buffers.
        pace: what learning rates relative to the model have found out about it; empty for absolute ones.
        method: the method's tensors; empty until the number of classes is known.
        evidence: what the particles' answers say about them; empty until then too.
        guard: what the guard knows of them, and what it can go back to; empty until then, or without one.
    """

    theta: Tensor
    learning_rates: Tensor
    step: Tensor
    optimizer: Mapping[str, Tensor] = field(default_factory=dict)
    pace: Mapping[str, Tensor] = field(default_factory=dict)
    method: Mapping[str, Tensor] = field(default_factory=dict)
    evidence: Mapping[str, Tensor] = field(default_factory=dict)
    guard: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def num_classes(self) -> int:
        """C, 0 while it is not known."""
        return evidence.num_classes(self.evidence)

    @property
    def has_rates(self) -> bool:
        """Whether the learning rates are known."""
        return not bool(self.learning_rates.isnan().any())

    def named(self) -> dict[str, Tensor]:
        """All tensors under the names that files have for them."""
        found = {"theta": self.theta, "learning_rates": self.learning_rates, "step": self.step}
        for group in _GROUPS:
            found.update({f"{group}_{name}": value for name, value in getattr(self, group).items()})
        return found

    def with_named(self, tensors: Mapping[str, Tensor]) -> "PopulationState":
        """A state of the same structure with other tensors."""
        return PopulationState(
            tensors["theta"],
            tensors["learning_rates"],
            tensors["step"],
            **{group: {name: tensors[f"{group}_{name}"] for name in getattr(self, group)} for group in _GROUPS},
        )

    def changed(self, change: Callable[[Tensor], Tensor]) -> "PopulationState":
        """The same state with every tensor changed alike."""
        return self.with_named({name: change(value) for name, value in self.named().items()})

    def moved(self, move: Callable[[Tensor], Tensor]) -> "PopulationState":
        """On another device or in another precision, never below float32; learning rates keep their digits."""

        def moved(tensor: Tensor) -> Tensor:
            there = move(tensor)
            half = there.dtype in (torch.float16, torch.bfloat16)
            return tensor.to(there.device, torch.float32) if half else there

        rates = self.learning_rates.to(move(self.learning_rates).device)
        return replace(self.changed(moved), learning_rates=rates)
