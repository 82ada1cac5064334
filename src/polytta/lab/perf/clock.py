"""Timing: warm up, place events around a few calls (on a CPU read the clock), take the median."""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

WARM_UPS = 3
ROUNDS = 5
CALLS = 5
SLOW = 100.0
"""Milliseconds from which a round is one call, and three rounds do."""


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one call, and the most GPU memory it needed beyond what was there before, in MiB."""

    milliseconds: float
    memory: float


def time_calls(call: Callable[[], object]) -> Timing:
    """Median over rounds of a few calls in a row, as a stream makes them."""
    if not torch.cuda.is_available():
        return _time_on_cpu(call)
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(WARM_UPS):
        call()
    slow = _round(call, 1) > SLOW
    times = [_round(call, 1 if slow else CALLS) for _ in range(3 if slow else ROUNDS)]
    # Reserved, not allocated: what a recorded graph needs while it replays is its pool.
    return Timing(statistics.median(times), (torch.cuda.max_memory_reserved() - before) / 2**20)


def _time_on_cpu(call: Callable[[], object]) -> Timing:
    """The same by the clock; memory is not told apart there."""
    times = []
    for _ in range(1 + ROUNDS):
        start = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - start))
    return Timing(statistics.median(times[1:]), 0.0)


def _round(call: Callable[[], object], calls: int) -> float:
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    events[0].record()
    for _ in range(calls):
        call()
    events[1].record()
    torch.cuda.synchronize()
    return events[0].elapsed_time(events[1]) / calls


def matmul_rate() -> float:
    """Measured rate of a large matrix product of random numbers (bfloat16 on a GPU), in FLOP per second."""
    size, device, dtype = (8192, "cuda", torch.bfloat16) if torch.cuda.is_available() else (512, "cpu", torch.float32)
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    return 2 * size**3 / (time_calls(lambda: a @ b).milliseconds / 1000)
