"""What each hypothesis weighed along a stream: enough points for a picture, however long it is."""

from collections.abc import Callable

import torch
from torch import Tensor

MOST_POINTS = 512
# Working weights out takes a few launches, which would be much of a short step.
_PAUSE_ON_GPU = 16


class WeightHistory:
    """Keeps the weights after every step, then after every second one, every fourth, ..."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self._weights: list[Tensor] = []
        self._every = 1

    def note(self, step: int, weigh: Callable[[], Tensor | None], *, on_gpu: bool) -> None:
        """After a step; ``weigh`` gives (K,) weights, or None for none, and is called when they are wanted."""
        pause = _PAUSE_ON_GPU if on_gpu else 1
        if step % (self._every * pause):
            return
        weights = weigh()
        if weights is None:
            return
        self.steps.append(step)
        self._weights.append(weights)
        if len(self.steps) > MOST_POINTS:
            self._every *= 2
            kept = [place for place, one in enumerate(self.steps) if one % (self._every * pause) == 0]
            self.steps, self._weights = [self.steps[n] for n in kept], [self._weights[n] for n in kept]

    def table(self, particles: int) -> Tensor:
        """(points, K)."""
        if not self._weights:
            return torch.empty(0, particles)
        return torch.stack([one.cpu() for one in self._weights])

    def copy(self) -> "WeightHistory":
        """One of its own, as it stands."""
        twin = WeightHistory()
        twin.steps, twin._weights, twin._every = list(self.steps), list(self._weights), self._every
        return twin
