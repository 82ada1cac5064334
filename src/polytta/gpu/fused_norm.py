"""Norm layers that take a fused kernel where there is one for the layer and the tensor at hand."""

from functools import partial
from weakref import ref

import torch
from torch import Tensor, nn

from polytta.gpu import kernels
from polytta.gpu.deferred import DeferredOutput, materialized
from polytta.gpu.fold import GraphFold
from polytta.particles.folded_norm import FoldedNorm


class FusedNorm(FoldedNorm):
    """A ``FoldedNorm`` with kernels for tokens and for channels-last images; anything else goes the plain way."""

    defers = False
    """Whether to be computed together with the ReLU that follows."""

    @property
    def fold(self) -> GraphFold:
        """The pass under way."""
        fold = self.current.fold
        assert isinstance(fold, GraphFold)
        return fold

    def forward(self, x: Tensor) -> Tensor:
        """The layer, each row with its own particle's affine."""
        self.called = True
        x = materialized(x)
        if not self.defers:
            return self._with(x, None, False)
        deferred = DeferredOutput(x, partial(self._with, x))
        self.fold.deferred.append(ref(deferred))
        return deferred

    def _with(self, x: Tensor, branch: Tensor | None, relu: bool) -> Tensor:
        """The layer, the branch that is added to it and the ReLU that follows."""
        weight, bias = self._affine(x)
        fits = kernels.run_on(x) and not self.fold.twice and self.fold.counts is None
        if not fits or weight.dtype != torch.float32 or weight.dim() != 2:
            return _follow(super().forward(x), branch, relu)
        recipe = self.site.recipe
        if recipe.kind == "layer" and not recipe.channel_first and self.site.batch_dim == 0 and x.is_contiguous():
            return _follow(recipe.finish(kernels.token_norm(x, weight, bias, recipe.epsilon)), branch, relu)
        if not self._takes_images(x):
            return _follow(super().forward(x), branch, relu)
        self._refuse_single_values(x)
        # A layer that defers has nothing of its own after it; one that does not may bring its ReLU along (timm's do).
        own_relu = len(recipe.post) == 1 and type(recipe.post[0]) is nn.ReLU
        joins = branch is not None and relu and _alike(branch, x)
        fused_relu = joins or (branch is None and (relu or own_relu))
        groups = recipe.groups if recipe.kind == "group" else None
        out = kernels.channel_norm(
            x,
            weight,
            bias,
            groups=groups,
            eps=recipe.epsilon,
            relu=fused_relu,
            skip=branch if joins else None,
            marks=self._marks(x) if groups is None else None,
        )
        return out if fused_relu else _follow(recipe.finish(out), branch, relu)

    def _marks(self, x: Tensor) -> tuple[Tensor, Tensor] | None:
        """What the kernels need to know of the samples that count, found once for each that somebody looked at."""
        counted = self._counted(x)
        if counted is None:
            return None
        key = x.shape[0], id(counted)
        if key not in self.fold.marks:
            self.fold.marks[key] = kernels.marked(counted, x.shape[0])
        return self.fold.marks[key]

    def _takes_images(self, x: Tensor) -> bool:
        """Whether the kernels for images know this layer and tensor."""
        recipe = self.site.recipe
        images = kernels.run_on_images(x) and x.shape[0] < 2**16  # CUDA's limit on the third dimension of a grid
        of_batch = recipe.kind == "batch" and self.batch_statistics and self.fold.pseudo_images is None
        return images and (recipe.kind == "group" or of_batch)


def _follow(out: Tensor, branch: Tensor | None, relu: bool) -> Tensor:
    joined = out if branch is None else out + branch
    return joined.relu() if relu else joined


def _alike(branch: Tensor, x: Tensor) -> bool:
    same = branch.shape == x.shape and branch.dtype == x.dtype
    return same and branch.is_contiguous(memory_format=torch.channels_last)
