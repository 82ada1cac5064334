"""The guard's look where values can be read at once: it ends as soon as all is seen to be well, which is nearly always.

What comes out is what ``Examiner`` finds, bit for bit; only the work is less. Not for steps that are recorded, in which
nothing is read.
"""

import torch
from torch import Tensor

from polytta.guard.health import Checkup, Examiner, Memory


class HostExaminer(Examiner):
    """An ``Examiner`` for particles on a CPU that is done where nobody is near a bound, rests or is to be kept."""

    _judged: tuple[Tensor, Tensor, Tensor] | None = None
    """Answers that were judged to be as they should; nobody writes to them, so they need no second look."""

    def __call__(
        self, memory: Memory, before: Tensor, after: Tensor, logits: Tensor, step: Tensor, restarted: Tensor | None
    ) -> Checkup:
        """What is found after a step, and what is done about it."""
        quiet = memory["quiet"] + 1
        if not self._is_calm(memory, before, after, logits, step, restarted, quiet):
            return super().__call__(memory, before, after, logits, step, restarted)
        nothing = torch.zeros_like(quiet)
        kept = {**memory, "quiet": quiet, "age": memory["age"] + 1}
        return Checkup(after, nothing, nothing, nothing, self._nobody, self._nobody, kept, acts=False)

    def _is_calm(
        self,
        memory: Memory,
        before: Tensor,
        after: Tensor,
        logits: Tensor,
        step: Tensor,
        restarted: Tensor | None,
        quiet: Tensor,
    ) -> bool:
        policy = self.policy
        if after.device.type != "cpu" or self._compares:
            return False
        if policy.reset_every is not None and int(step) % policy.reset_every == 0:
            return False
        if restarted is not None and bool(restarted.any()):
            return False
        if bool((memory["rest"] | memory["strikes"]).any()):
            return False
        if memory["snapshots"].shape[1] and not bool((quiet % policy.snapshot_every).all()):
            return False
        length = torch.linalg.vector_norm(after - before, dim=1)
        drift = torch.linalg.vector_norm(after - self._source, dim=1) / self._most
        within = bool((length <= self._longest).all()) and bool((drift <= 0.5 * policy.drift).all())
        return within and not bool(self._broken(logits).any()) and self._answers_are_fine(memory)

    def _answers_are_fine(self, memory: Memory) -> bool:
        """Whether nobody's answers are past half of what is allowed."""
        if not self._judges_answers:
            return True
        told = memory["answers"], memory["source_answers"], memory["compared"]
        known = self._judged
        if known is None or any(one is not other for one, other in zip(told, known, strict=True)):
            _, near = self._answers_beyond(memory, torch.zeros_like(memory["compared"]))
            self._judged = None if bool(near.any()) else told
        return self._judged is not None
