"""K hypotheses of the norm parameters over one frozen network, and the engines that run them."""

from polytta.particles.engine import Engine as Engine
from polytta.particles.engines import ENGINES as ENGINES
from polytta.particles.engines import PLAIN_ENGINES as PLAIN_ENGINES
from polytta.particles.engines import choose_engine as choose_engine
from polytta.particles.folded import FoldedEngine as FoldedEngine
from polytta.particles.folded import StaticFoldedEngine as StaticFoldedEngine
from polytta.particles.loop import LoopEngine as LoopEngine
