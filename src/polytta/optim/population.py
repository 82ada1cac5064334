"""K optimizers over one (K, P) tensor, moved in as few operations as there are different optimizers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from polytta.optim.base import Optimizer, Rows, Slots


class PopulationOptimizer:
    """Applies each particle's optimizer to its row.

    Args:
        optimizers: one per particle; learning rates are given at each step.
    """

    def __init__(self, optimizers: Sequence[Optimizer]) -> None:
        self.groups: dict[Optimizer, list[int]] = {}
        self._indices: dict[tuple[Optimizer, torch.device], Tensor] = {}
        for row, optimizer in enumerate(optimizers):
            self.groups.setdefault(replace(optimizer, lr=None), []).append(row)

    def init(self, theta: Tensor) -> Slots:
        """Buffers for all rows; rows whose optimizer does not use one leave it at zero."""
        names = sorted({name for optimizer in self.groups for name in optimizer.slots})
        slots = {name: torch.zeros_like(theta) for name in names}
        return {**slots, "count": torch.zeros(theta.shape[0], 1, dtype=torch.int64, device=theta.device)}

    def step(
        self, theta: Tensor, direction: Tensor, state: Mapping[str, Tensor], lr: Tensor, source: Tensor
    ) -> tuple[Tensor, Slots]:
        """All rows moved, each by its ``lr`` (K,); whether a row may is decided elsewhere (``polytta.guard``)."""
        lr = lr.to(theta.dtype).unsqueeze(1)
        count = state["count"] + 1
        stepped = dict(state)
        moved = theta
        for optimizer in self.groups:
            if len(self.groups) == 1:
                own = {name: state[name] for name in optimizer.slots}
                moved, new = optimizer.step(Rows(theta, direction, own, lr, count, source))
                stepped.update(new)
                break
            index = self._index(optimizer, theta.device)
            own = {name: state[name][index] for name in optimizer.slots}
            part, new = optimizer.step(Rows(theta[index], direction[index], own, lr[index], count[index], source))
            moved = moved.index_copy(0, index, part)
            for name, values in new.items():
                stepped[name] = stepped[name].index_copy(0, index, values)
        stepped["count"] = count
        return moved, stepped

    def _index(self, optimizer: Optimizer, device: torch.device) -> Tensor:
        """Rows of an optimizer; kept, because a graph under capture must not copy from the host."""
        key = (optimizer, device)
        if key not in self._indices:
            self._indices[key] = torch.tensor(self.groups[optimizer], device=device)
        return self._indices[key]

    def forget(self, state: Mapping[str, Tensor], rows: Tensor) -> Slots:
        """Optimizer state of a fresh start for the rows marked in ``rows`` (K,)."""
        marked = rows.unsqueeze(1)
        return {name: torch.where(marked, torch.zeros_like(values), values) for name, values in state.items()}
