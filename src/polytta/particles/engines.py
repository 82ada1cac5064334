"""Engines by name. The one for GPUs is imported when it is asked for, and never else."""

from importlib import import_module

import torch

from polytta.errors import ConfigError
from polytta.particles.engine import Engine
from polytta.particles.folded import FoldedEngine, StaticFoldedEngine
from polytta.particles.loop import LoopEngine

_PLAIN: dict[str, type[Engine]] = {engine.name: engine for engine in (FoldedEngine, StaticFoldedEngine, LoopEngine)}
GRAPH = "graph"
_GRAPH_MODULE = "polytta.gpu"
PLAIN_ENGINES = tuple(_PLAIN)
"""Those that run anywhere."""
ENGINES = (*PLAIN_ENGINES, GRAPH)


def choose_engine(name: str, device: torch.device) -> type[Engine]:
    """The engine of that name; "auto" is the best the device has."""
    if name == "auto":
        name = GRAPH if device.type == "cuda" else FoldedEngine.name
    if name != GRAPH:
        return _PLAIN[name]
    if device.type != "cuda":
        raise ConfigError(f"engine: got {name!r} for a model on {device}; allowed is a CUDA device.")
    graph: type[Engine] = import_module(_GRAPH_MODULE).GraphEngine
    return graph
