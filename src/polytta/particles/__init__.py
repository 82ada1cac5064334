"""K hypotheses of the norm parameters over one frozen network, and the engines that run them."""

from polytta.particles.engine import Engine as Engine
from polytta.particles.folded import FoldedEngine as FoldedEngine
from polytta.particles.folded import StaticFoldedEngine as StaticFoldedEngine
from polytta.particles.graph import GraphEngine as GraphEngine
from polytta.particles.layout import Layout as Layout
from polytta.particles.loop import LoopEngine as LoopEngine

ENGINES: dict[str, type[Engine]] = {e.name: e for e in (FoldedEngine, StaticFoldedEngine, GraphEngine, LoopEngine)}
