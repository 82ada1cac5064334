"""What a run costs: seconds and memory of the device it is on."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Clock:
    """Seconds of prediction and learning; first goes when the first images are there."""

    def __init__(self, device: str) -> None:
        self.seconds = self.processor_seconds = 0.0
        self._device = device
        self._since: tuple[float, float] | None = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """While something else is done, once the device has done what it was told before."""
        if self._since is not None:
            self._synchronize()
            wall, processor = self._since
            self.seconds += time.perf_counter() - wall
            self.processor_seconds += time.process_time() - processor
        yield
        self._synchronize()
        self._since = time.perf_counter(), time.process_time()

    def _synchronize(self) -> None:
        if self._device.startswith("cuda"):
            torch.cuda.synchronize(self._device)


def forget_peak_memory(device: str) -> None:
    """From now on counts for ``peak_memory_mb``; of a process that is not on a GPU, everything does."""
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory_mb(device: str) -> float:
    """Most memory held: allocated on a CUDA device, of the process otherwise."""
    if device.startswith("cuda"):
        return torch.cuda.max_memory_allocated(device) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
