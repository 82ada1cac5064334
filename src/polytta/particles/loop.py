"""One particle at a time through the untouched layers: the simplest correct engine, and the oracle of the others."""

from typing import ClassVar

import torch
from torch import Tensor

from polytta.network.copies import use_batch_statistics
from polytta.particles.engine import Engine, Statistics


class LoopEngine(Engine):
    """Calls the network K times, each time with one particle's parameters in place of the source's."""

    name: ClassVar[str] = "loop"

    def _set_up(self, statistics: Statistics) -> None:
        if statistics == "batch":
            use_batch_statistics(self.network)

    def _run(self, theta: Tensor, x: Tensor, where: Tensor | None, twice: bool) -> Tensor:
        rows = []
        for k in range(theta.shape[0]):
            if where is None:
                rows.append(self._one(theta[k], x[k]))
                continue
            full = theta.new_zeros(x.shape[1], self.findings.num_classes)
            if bool(where[k].any()):
                kept = self._one(theta[k], x[k][where[k]], may_be_alone=True)
                full = full.to(kept.dtype).index_put((where[k],), kept)
            rows.append(full)
        return torch.stack(rows)

    def _one(self, vector: Tensor, x: Tensor, *, may_be_alone: bool = False) -> Tensor:
        # BatchNorm refuses a single value per channel. That is right for a whole batch; for the one sample that a
        # filter left over, the same sample twice has the same mean and variance.
        alone = may_be_alone and x.shape[0] == 1 and self.uses_batch_statistics
        given = x.repeat_interleave(2, dim=0) if alone else x
        out = torch.func.functional_call(self.network, self.layout.named(vector), (self._enter(given),))
        return self._checked_output(out, given.shape[0])[: x.shape[0]]
