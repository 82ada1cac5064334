"""One particle at a time through the untouched layers: the simplest correct engine, and the oracle of the others."""

import threading
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from polytta.guard import Examiner, HostExaminer
from polytta.network.copies import share_structure
from polytta.network.neighbours import Company, CurrentCompany
from polytta.network.statistics import Statistics, use_statistics
from polytta.particles.engine import Engine
from polytta.particles.probe import Findings, probe


class LoopEngine(Engine):
    """Calls the network K times, each time with one particle's parameters in place of the source's."""

    name: ClassVar[str] = "loop"
    examiner_class: ClassVar[type[Examiner]] = HostExaminer

    @classmethod
    def examine(cls, network: nn.Module, sample: Tensor, layers: tuple[str, ...]) -> Findings:
        """Layers stay as they are, whatever they compute."""
        return probe(network, sample, layers, to_replace=False)

    def _set_up(self) -> None:
        self._networks: dict[Statistics, nn.Module] = {}
        # Parameters are swapped in trees that all threads share.
        self._turn = threading.Lock()
        self._current, self._of_counted = CurrentCompany(), share_structure(self.network)
        use_statistics(self._of_counted, "batch", self._current, counted_only=True)
        for kind in dict.fromkeys(self.statistics):
            self._networks[kind] = share_structure(self.network)
            use_statistics(self._networks[kind], kind, self._current)

    def _run(self, theta: Tensor, x: Tensor, where: Tensor | None, rows: Tensor | None, twice: bool) -> Tensor:
        found = []
        numbers = range(theta.shape[0]) if rows is None else rows.tolist()
        for k, number in enumerate(numbers):
            kind = self.statistics[number % len(self.statistics)]
            if where is None:
                found.append(self._one(theta[k], x[k], kind))
                continue
            full = theta.new_zeros(x.shape[1], self.width)
            if bool(where[k].any()):
                kept = self._one(theta[k], x[k][where[k]], kind, may_be_alone=True)
                full = full.to(kept.dtype).index_put((where[k],), kept)
            found.append(full)
        return torch.stack(found)

    def _one(self, vector: Tensor, x: Tensor, kind: Statistics, *, may_be_alone: bool = False) -> Tensor:
        # BatchNorm refuses a single value per channel. That is right for a whole batch; for the one sample that a
        # filter left over, the same sample twice has the same mean and variance.
        alone = may_be_alone and x.shape[0] == 1 and self.uses_batch_statistics and kind == "batch"
        given = x.repeat_interleave(2, dim=0) if alone else x
        company = self._company(None)
        out = self._called(self._networks[kind], vector, given, company)
        if kind == "batch" and company is not None and company.sets_aside:
            out = self._called(self._of_counted, vector, given, self._company(None))
        return self._checked_output(out, given.shape[0])[: x.shape[0]]

    def _called(self, network: nn.Module, vector: Tensor, x: Tensor, company: Company | None) -> Any:
        with self._turn, self._current.during(company):
            return torch.func.functional_call(network, self.layout.named(vector), (self._enter(x),))
