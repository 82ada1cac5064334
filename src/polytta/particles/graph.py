"""The engine for GPUs: folded with static shapes, fused kernels, its steps recorded as CUDA graphs.

The recording itself is in ``polytta.capture``; here is what makes the passes worth recording. Everything computes what
the plain modules compute.
"""

from contextlib import nullcontext
from dataclasses import replace
from typing import ClassVar

from torch import Tensor, nn

from polytta.particles.engine import Statistics
from polytta.particles.folded import StaticFoldedEngine, replace_everywhere
from polytta.particles.folded_norm import FoldedNorm
from polytta.particles.fused_norm import FusedNorm
from polytta.particles.patches import PatchProjection, SplitsKeepLayout
from polytta.particles.precision import is_convolutional
from polytta.particles.probe import Findings


class GraphEngine(StaticFoldedEngine):
    """Static, fused, recorded."""

    name: ClassVar[str] = "graph"
    captures: ClassVar[bool] = True
    replaces_all: ClassVar[bool] = True
    stand_in: ClassVar[type[FoldedNorm]] = FusedNorm

    def _set_up(self, statistics: Statistics) -> None:
        self.findings = _with_activations(self.findings)
        super()._set_up(statistics)
        for name in self.findings.activations.values():
            replace_everywhere(self.network, self.network.get_submodule(name), nn.Identity())
        # Only the one that cuts a transformer's image: elsewhere a parent may flatten what a convolution returns, which
        # the projection's memory layout does not allow.
        for module in () if is_convolutional(self.network) else list(self.network.modules()):
            if PatchProjection.fits(module):
                replace_everywhere(self.network, module, PatchProjection(module))  # type: ignore[arg-type]

    def _forward(self, x: Tensor) -> Tensor:
        with nullcontext() if self.fold.twice else SplitsKeepLayout():
            return super()._forward(x)


def _with_activations(findings: Findings) -> Findings:
    sites = dict(findings.sites)
    for norm in findings.activations:
        site = sites[norm]
        sites[norm] = replace(site, recipe=replace(site.recipe, post=(*site.recipe.post, nn.ReLU())))
    return replace(findings, sites=sites)
