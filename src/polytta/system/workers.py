"""Worker processes that use one core each and never outlive the process that started them."""

import multiprocessing
import multiprocessing.connection
import os
import threading

import torch


def usable_cores() -> int:
    """Cores this process may use, which in a container can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_worker() -> None:
    """First thing a worker runs."""
    # One core each: the processes are the parallelism.
    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: int) -> None:
    """End this worker when the main process is gone: a pool's workers outlive a killed parent otherwise."""
    multiprocessing.connection.wait([sentinel])
    os._exit(1)
