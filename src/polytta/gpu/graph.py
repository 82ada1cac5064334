"""The engine for GPUs: folded with static shapes, fused kernels, its steps recorded as CUDA graphs."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from polytta.engine.state import PopulationState
from polytta.engine.step import StepResult
from polytta.gpu import kernels
from polytta.gpu.capture import CapturedSteps
from polytta.gpu.deferred import deferrable_norms, materialized
from polytta.gpu.examiner import FusedExaminer
from polytta.gpu.fold import GraphFold
from polytta.gpu.fused_norm import FusedNorm
from polytta.gpu.patches import PatchProjection, SplitsKeepLayout
from polytta.gpu.pointwise import Pointwise
from polytta.gpu.pooling import FusedMaxPool
from polytta.gpu.shortcut import Shortcut
from polytta.gpu.stem import Stem
from polytta.guard import Examiner
from polytta.network.replacement import Replacement, replace_everywhere
from polytta.particles.fold import Fold
from polytta.particles.folded import StaticFoldedEngine
from polytta.particles.folded_norm import FoldedNorm
from polytta.particles.probe import Findings, probe, probing_batch


@dataclass(frozen=True)
class GraphFindings(Findings):
    """What the probe learnt, and the norm layers that may be computed together with the ReLU that follows them."""

    before_relu: frozenset[str] = frozenset()


class GraphEngine(StaticFoldedEngine):
    """Static, fused, recorded. Everything computes what the plain modules compute."""

    name: ClassVar[str] = "graph"
    fuses_images: ClassVar[bool] = True
    norm_class: ClassVar[type[FoldedNorm]] = FusedNorm
    fold_class: ClassVar[type[Fold]] = GraphFold
    examiner_class: ClassVar[type[Examiner]] = FusedExaminer

    @classmethod
    def examine(cls, network: nn.Module, sample: Tensor, layers: tuple[str, ...]) -> GraphFindings:
        """Looks at all norm layers, and for the ReLUs that follow."""
        found = probe(network, sample, layers, everything=True)
        before_relu = deferrable_norms(network, tuple(found.sites), probing_batch(sample))
        return GraphFindings(found.sites, found.num_classes, before_relu)

    def recorder(self, step: Callable[[PopulationState, Tensor], StepResult]) -> CapturedSteps:
        """The step as CUDA graphs."""
        return CapturedSteps(step)

    def weighted_sums(self, weights: Tensor, values: Tensor) -> Tensor:
        """Σ_j w_ijb v_jb, by a kernel where it can."""
        if kernels.run_on(values) and values.dtype == weights.dtype == torch.float32 and values.is_contiguous():
            return kernels.mix(weights, values)
        return super().weighted_sums(weights, values)

    def _replaces(self, layer: str) -> bool:
        return True

    def _set_up(self) -> None:
        super()._set_up()
        before_relu = self.findings.before_relu if isinstance(self.findings, GraphFindings) else frozenset()
        for norm in self.norms:
            assert isinstance(norm, FusedNorm)
            norm.defers = norm.name in before_relu and not norm.site.recipe.post
        for module in list(self.network.modules()):
            replacement: Replacement | None = None
            if FusedMaxPool.fits(module):
                replacement = FusedMaxPool(module, self.current)  # type: ignore[arg-type]
            elif Shortcut.fits(module):
                replacement = Shortcut(module)
            # A transformer has one convolution, which cuts the image. Elsewhere a parent may flatten what such a
            # convolution returns, which the projection's memory layout does not allow.
            elif not self.convolutional and PatchProjection.fits(module):
                replacement = PatchProjection(module)
            elif self.convolutional and Pointwise.fits(module):
                replacement = Pointwise(module)
            elif self.convolutional and Stem.fits(module):
                replacement = Stem(module, self.current)  # type: ignore[arg-type]
                # It lays out what it reads itself, which is the images.
                self.enters_channels_last &= self.precision != "bf16"
            if replacement is not None:
                replace_everywhere(self.network, module, replacement.eval())

    def _call(self, x: Tensor) -> object:
        fold = self.current.fold
        assert isinstance(fold, GraphFold)
        with nullcontext() if fold.twice else SplitsKeepLayout():
            out = materialized(super()._call(x))
            # Somebody's hook may keep one to look at later, when the particles are others.
            for deferred in fold.deferred:
                materialized(deferred())
        return out
