"""The engine for GPUs: folded with static shapes, fused kernels, its steps recorded as CUDA graphs.

The recording itself is in ``polytta.gpu.capture``; here is what makes the passes worth recording. Everything computes what
the plain modules compute.
"""

from contextlib import nullcontext
from typing import ClassVar

from torch import Tensor

from polytta.gpu.deferred import settled
from polytta.gpu.fused_norm import FusedNorm
from polytta.gpu.patches import PatchProjection, SplitsKeepLayout
from polytta.gpu.pointwise import Pointwise
from polytta.gpu.pooling import FusedMaxPool
from polytta.gpu.shortcut import Shortcut
from polytta.gpu.stem import Stem
from polytta.network.replacement import StandIn, replace_everywhere
from polytta.particles.engine import Statistics
from polytta.particles.folded import StaticFoldedEngine
from polytta.particles.folded_norm import FoldedNorm


class GraphEngine(StaticFoldedEngine):
    """Static, fused, recorded."""

    name: ClassVar[str] = "graph"
    captures: ClassVar[bool] = True
    replaces_all: ClassVar[bool] = True
    stand_in: ClassVar[type[FoldedNorm]] = FusedNorm

    def _set_up(self, statistics: Statistics) -> None:
        super()._set_up(statistics)
        for norm in self.stand_ins:
            assert isinstance(norm, FusedNorm)
            norm.waits = norm.name in self.findings.before_relu and not norm.site.recipe.post
        for module in list(self.network.modules()):
            stand_in: StandIn | None = None
            if FusedMaxPool.fits(module):
                stand_in = FusedMaxPool(module, self.fold)  # type: ignore[arg-type]
            elif Shortcut.fits(module):
                stand_in = Shortcut(module)
            # A transformer has one convolution, which cuts the image. Elsewhere a parent may flatten what such a
            # convolution returns, which the projection's memory layout does not allow.
            elif not self.convolutional and PatchProjection.fits(module):
                stand_in = PatchProjection(module)
            elif self.convolutional and Pointwise.fits(module):
                stand_in = Pointwise(module)
            elif self.convolutional and Stem.fits(module):
                stand_in = Stem(module, self.fold)  # type: ignore[arg-type]
                # It lays out what it reads itself, which is the images.
                self.enters_channels_last &= self.precision != "bf16"
            if stand_in is not None:
                replace_everywhere(self.network, module, stand_in.eval())

    def _forward(self, x: Tensor) -> Tensor:
        with nullcontext() if self.fold.twice else SplitsKeepLayout():
            out: Tensor = settled(super()._forward(x))
            # Somebody's hook may keep one to look at later, when the particles are others.
            for waiting in self.fold.pending:
                settled(waiting())
        return out
