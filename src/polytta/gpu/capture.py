"""Steps recorded as CUDA graphs: one recording per input shape, replayed without any Python in between.

At small batches a step is thousands of tiny kernels, and starting them one by one takes longer than running them. A
graph starts them all at once. What it reads and writes must stay where it was, so the state lives in fixed buffers, and
everything handed out is copied first (``Adapted.theta`` is the buffer itself). A step that cannot be recorded (a user's
method that reads a value back to the host, or draws random numbers there) runs without a graph, after one warning.
"""

import gc
import random
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from polytta.engine.state import PopulationState
from polytta.engine.step import StepResult
from polytta.errors import PolyttaWarning
from polytta.guard import all_in_range

# Streams end with one odd batch; a service may see a few sizes. Each recording keeps its activations allocated.
RECORDINGS = 4
_WARM_UPS = 3
# Seconds after which one is enough: so long a step is many passes, each of which has warmed up the next.
_LONG_STEP = 1.0


@dataclass(frozen=True)
class _Recording:
    graph: torch.cuda.CUDAGraph
    x: Tensor
    result: StepResult


class CapturedSteps:
    """Calls ``step`` through CUDA graphs.

    Args:
        step: a pure function of state and batch.
        limit: number of shapes kept; the least recently used goes first.
    """

    def __init__(self, step: Callable[[PopulationState, Tensor], StepResult], limit: int = RECORDINGS) -> None:
        self._step = step
        self._limit = limit
        self._recordings: OrderedDict[tuple[object, ...], _Recording] = OrderedDict()
        self._state: PopulationState | None = None
        self._buffers: dict[str, Tensor] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()
        self._refused = False

    def __call__(self, state: PopulationState, x: Tensor) -> StepResult | None:
        """One step; None if the batch holds values nothing should be learnt from, which leave the state as it was."""
        usable = _AllInRange(x)
        result = self._replayed(state, x)
        return result if usable.wait() else None

    def _replayed(self, state: PopulationState, x: Tensor) -> StepResult:
        """The state handed back is the fixed buffers themselves, to be handed in again."""
        if self._refused:
            return self._step(state, x)
        fixed = self._take(state)
        precision = (torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"))
        key = (tuple(x.shape), x.dtype, x.is_contiguous(), precision)
        if key not in self._recordings:
            recording = self._record(fixed, x)
            if recording is None:
                return self._step(state, x)
            self._recordings[key] = recording
            if len(self._recordings) > self._limit:
                self._recordings.popitem(last=False)
        self._recordings.move_to_end(key)
        recording = self._recordings[key]
        recording.x.copy_(x)
        recording.graph.replay()
        result = recording.result
        measures = {name: value.clone() for name, value in result.measures.items()}
        return StepResult(result.answer.clone(), result.logits.clone(), result.numbers.clone(), measures, fixed)

    def _take(self, state: PopulationState) -> PopulationState:
        """The fixed buffers, with whatever was changed outside: a reset, a loaded state, another batch's eager step."""
        if self._state is state:
            return state
        given = state.named()
        if self._state is None or _shapes(self._buffers) != _shapes(given):
            self._recordings.clear()
            self._state = state.changed(torch.clone)
            self._buffers = self._state.named()
        else:
            for name, value in given.items():
                if value is not self._buffers[name]:
                    self._buffers[name].copy_(value)
        return self._state

    def _record(self, state: PopulationState, x: Tensor) -> _Recording | None:
        kept = x.clone()
        before = _host_randomness()
        self._warm_up(state, kept)
        if _host_randomness() != before:
            self._refuse("it draws random numbers on the host, which would be the same at every replay")
            return None
        if not self._recordings:  # a pool that nobody uses any more cannot be shared
            self._pool = torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        try:
            result = self._capture(graph, state, kept)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # it ran without recording, so whatever this is, recording is to blame
            self._refuse((str(error).strip() or type(error).__name__).splitlines()[0])
            torch.cuda.synchronize()
            return None
        return _Recording(graph, kept, result)

    def _refuse(self, why: str) -> None:
        self._refused = True
        self._recordings.clear()
        warnings.warn(
            f"engine: this step cannot be recorded as a CUDA graph ({why}); it runs without one, more slowly.",
            PolyttaWarning,
            stacklevel=3,
        )

    def _capture(self, graph: torch.cuda.CUDAGraph, state: PopulationState, x: Tensor) -> StepResult:
        # By hand instead of torch.cuda.graph, which leaves its own stream current when a capture fails.
        with torch.cuda.stream(self._stream):
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                result = self._step(state, x)
                self._keep(result.state)
            finally:
                graph.capture_end()
        return result

    def _keep(self, state: PopulationState) -> None:
        """Writes a state into the fixed buffers, those of a kind at once: most of them hold a few numbers."""
        kinds: dict[torch.dtype, tuple[list[Tensor], list[Tensor]]] = {}
        for name, value in state.named().items():
            buffer = self._buffers[name]
            if value is not buffer:
                buffers, values = kinds.setdefault(value.dtype, ([], []))
                buffers.append(buffer)
                values.append(value)
        for buffers, values in kinds.values():
            torch._foreach_copy_(buffers, values)

    def _warm_up(self, state: PopulationState, x: Tensor) -> None:
        """Lets libraries choose and build their kernels, which must not happen while recording."""
        torch.cuda.synchronize()
        # Memory that earlier steps left on another stream cannot be used here, and would only lie there.
        torch.cuda.empty_cache()
        with torch.cuda.stream(self._stream):
            begun = perf_counter()
            for _ in range(_WARM_UPS):
                self._step(state, x)
                torch.cuda.synchronize()
                if perf_counter() - begun > _LONG_STEP:
                    break
        torch.cuda.synchronize()
        gc.collect()
        torch.cuda.empty_cache()  # a recording has memory of its own


def _host_randomness() -> tuple[object, ...]:
    """What changes when somebody draws a random number from a generator of the host."""
    arrays = np.random.get_state(legacy=False)["state"]
    return torch.get_rng_state().numpy().tobytes(), random.getstate(), arrays["key"].tobytes(), arrays["pos"]


def _shapes(tensors: dict[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (value.shape, value.dtype) for name, value in tensors.items()}


class _AllInRange:
    """Whether all of a batch is usable, found out on a GPU while the host goes on.

    Args:
        x: an admitted batch.
    """

    def __init__(self, x: Tensor) -> None:
        self._fine = torch.empty((), dtype=torch.bool, pin_memory=True)
        self._fine.copy_(all_in_range(x), non_blocking=True)
        self._known = torch.cuda.Event()
        self._known.record()

    def wait(self) -> bool:
        """The answer, when it is there."""
        self._known.synchronize()
        return bool(self._fine)
