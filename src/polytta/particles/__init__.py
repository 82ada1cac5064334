"""K hypotheses of the norm parameters over one frozen network, and the engines that run them."""

import torch

from polytta.errors import ConfigError
from polytta.gpu.graph import GraphEngine as GraphEngine
from polytta.network.layout import Layout as Layout
from polytta.particles.engine import Engine as Engine
from polytta.particles.folded import FoldedEngine as FoldedEngine
from polytta.particles.folded import StaticFoldedEngine as StaticFoldedEngine
from polytta.particles.loop import LoopEngine as LoopEngine

ENGINES: dict[str, type[Engine]] = {e.name: e for e in (FoldedEngine, StaticFoldedEngine, GraphEngine, LoopEngine)}


def choose_engine(name: str, device: torch.device) -> type[Engine]:
    """The engine of that name; "auto" is the best the device has."""
    if name == "auto":
        name = GraphEngine.name if device.type == "cuda" else FoldedEngine.name
    if ENGINES[name].captures and device.type != "cuda":
        raise ConfigError(f"engine: got {name!r} for a model on {device}; allowed is a CUDA device.")
    return ENGINES[name]
