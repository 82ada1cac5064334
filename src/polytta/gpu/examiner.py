"""The guard's look, by kernels where they can: a recorded step has no time for a hundred operations on few numbers."""

import torch
from torch import Tensor

from polytta.gpu import kernels
from polytta.guard import Checkup, Examiner
from polytta.guard.health import Memory

_MOST_CLASSES = 2**14
"""That a program holds at once."""
_MOST_VALUES = 2**22
"""Of a particle, whose sums a program adds up."""


class FusedExaminer(Examiner):
    """An ``Examiner`` with kernels for float32 particles; others are looked at the plain way."""

    def __call__(
        self, memory: Memory, before: Tensor, after: Tensor, logits: Tensor, step: Tensor, restarted: Tensor | None
    ) -> Checkup:
        """What is found after a step, and what is done about it."""
        if not self._takes(memory, before, after):
            return super().__call__(memory, before, after, logits, step, restarted)
        return kernels.examine(
            self._with_answers(memory, logits),
            before,
            after,
            self._source,
            self._broken(logits),
            logits.shape[1],
            step,
            self._nobody if restarted is None else restarted,
            policy=self.policy,
            learners=self._learners,
            most=self._most,
            longest=self._longest,
            rests=self._rests,
            judges=self._judges_answers,
        )

    def _takes(self, memory: Memory, before: Tensor, after: Tensor) -> bool:
        """Whether the kernels know tensors like these; they count places with 32 bits."""
        slots, classes = max(1, memory["snapshots"].shape[1]), memory["answers"].shape[1]
        laid_out = all(value.is_contiguous() for value in (before, after, *memory.values()))
        small = after.shape[1] <= _MOST_VALUES and after.numel() * slots < 2**31 and classes <= _MOST_CLASSES
        return laid_out and small and kernels.run_on(after) and after.dtype == torch.float32
