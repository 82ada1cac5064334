"""Timing on a GPU: warm up, place events around every call, take the median."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

WARM_UPS = 5


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one call, and the most GPU memory it needed beyond what was there before, in MiB."""

    milliseconds: float
    memory: float


def time_calls(call: Callable[[], object], seconds: float) -> Timing:
    """Median over as many calls as fit, at least 7."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(WARM_UPS):
        call()
    torch.cuda.synchronize()
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < 7 or time.perf_counter() < until:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        call()
        events[1].record()
        torch.cuda.synchronize()
        times.append(events[0].elapsed_time(events[1]))
    # Reserved, not allocated: what a recorded graph needs while it replays is its pool.
    return Timing(statistics.median(times), (torch.cuda.max_memory_reserved() - before) / 2**20)


def matmul_rate(seconds: float = 1.0) -> float:
    """Measured bfloat16 rate of a large matrix product of random numbers, in FLOP per second."""
    size = 8192
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * size**3 / (time_calls(lambda: a @ b, seconds).milliseconds / 1000)
