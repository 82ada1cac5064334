r"""RDumb: EATA's selected entropy without an anchor, and back to the source model every N batches.

    S = {b : H_b < E₀, |cos(p_b, m)| < d},   ℓ = 1/|S| · Σ_{b∈S} exp(E₀ - H_b) H_b
    every N batches, after the step:  θ ← θ⁰, optimizer and m as at the start

Press et al., "RDumb: A simple approach that questions our progress in continual test-time adaptation", NeurIPS 2023.
Batches are counted, not updates: also those of which nothing was kept. The public code moves by SGD with Nesterov
momentum (``SGD(nesterov=True)``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from polytta.methods.eata import EATA
from polytta.methods.schedule import Schedule
from polytta.roles import Context, Lesson, Pass, Sight, Start, State


@dataclass(frozen=True)
class RDumb(EATA):
    """EATA that starts over now and then; ``fisher`` is None as published.

    Attributes:
        reset_every: N; 0 is never.
        window: single images to collect before they are learnt from together (``polytta.methods.schedule``); 1 learns
            from each.
    """

    reset_every: int = 1000
    window: int = 1

    name: ClassVar[str] = "rdumb"

    def validate(self) -> None:
        """As EATA, with whole numbers of batches and images."""
        super().validate()
        self._schedule.validate("RDumb")

    def init(self, start: Start) -> State:
        """EATA's, and what is counted."""
        return {**super().init(start), **self._schedule.init(start)}

    def look(self, context: Context, passes: Sequence[Pass], logits: Tensor, state: State) -> Sight:
        """The window in place of a single image."""
        return self._schedule.look(self.answer, context, passes, logits, state)

    def learn(self, context: Context, passes: Sequence[Pass], state: State) -> Lesson:
        """EATA's lesson, when it is due."""
        lesson = super().learn(context, passes, state)
        return self._schedule.scheduled(context, passes, lesson, state, super().init(context))

    @property
    def _schedule(self) -> Schedule:
        return Schedule(self.window, self.reset_every)
