"""Random numbers that depend on nothing but where they are used: seed, particle, view, step and position.

    u = top 24 bits of mix(key + step · A + position · B) / 2²⁴,   mix = splitmix64's finaliser (Steele et al. 2014)

There is no generator to carry along, so a resumed stream, a population among others and any engine or device draw the
same numbers, and a captured graph draws new ones at every replay, because the step is a tensor that it reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_MASK = 2**64 - 1
_PER_STEP = 0xD1342543DE82EF95
_PER_POSITION = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def keys(owners: Sequence[tuple[int, int]], views: int, device: torch.device) -> Tensor:
    """(views, R) keys of particles given as (seed, number of the particle)."""
    table = [[_signed(_mix(seed, number, view)) for seed, number in owners] for view in range(views)]
    return torch.tensor(table, dtype=torch.int64, device=device)


@dataclass(frozen=True)
class StepNoise:
    """The numbers of one step: called with a view, those of that view from their first on.

    Attributes:
        keys: (views, R).
        step: () number of the step.
    """

    keys: Tensor
    step: Tensor

    def __call__(self, view: int) -> "Noise":
        """The particles' random numbers for this step and view."""
        return Noise(self.keys[view], self.step)


class Noise:
    """The numbers of one view of one step, for all particles.

    Args:
        keys: (R,) one per particle.
        step: () number of the step.
    """

    def __init__(self, keys: Tensor, step: Tensor) -> None:
        self._start = keys + step * _signed(_PER_STEP)
        self._drawn = 0

    def uniform(self, *shape: int) -> Tensor:
        """(R, *shape) float32 numbers in [0, 1), new ones at every call."""
        count = torch.Size(shape).numel()
        position = torch.arange(self._drawn + 1, self._drawn + 1 + count, device=self._start.device)
        self._drawn += count
        bits = self._start.unsqueeze(1) + position * _signed(_PER_POSITION)
        bits = (bits ^ _shifted(bits, 30)) * _signed(_FIRST)
        bits = (bits ^ _shifted(bits, 27)) * _signed(_SECOND)
        bits = bits ^ _shifted(bits, 31)
        return (_shifted(bits, 40).float() / 2**24).reshape(-1, *shape)


def _shifted(bits: Tensor, by: int) -> Tensor:
    """Shift to the right as if unsigned; torch's own shift copies the sign bit."""
    return (bits >> by) & (2 ** (64 - by) - 1)


def _signed(number: int) -> int:
    """The 64-bit pattern as torch's signed integers write it."""
    return number - 2**64 if number >= 2**63 else number


def _mix(*numbers: int) -> int:
    """One well-spread 64-bit key from several small integers."""
    state = 0
    for number in numbers:
        state = (state + number + _PER_POSITION) & _MASK
        state = ((state ^ (state >> 30)) * _FIRST) & _MASK
        state = ((state ^ (state >> 27)) * _SECOND) & _MASK
        state ^= state >> 31
    return state
