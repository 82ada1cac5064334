"""Norm layers that take a fused kernel where there is one for the layer and the tensor at hand."""

import torch
from torch import Tensor, nn

from polytta.particles import kernels
from polytta.particles.folded_norm import FoldedNorm

_DTYPES = (torch.bfloat16, torch.float32)


class FusedNorm(FoldedNorm):
    """A ``FoldedNorm`` with kernels for tokens and for channels-last images; anything else goes the plain way."""

    def forward(self, x: Tensor) -> Tensor:
        """The layer, each row with its own particle's affine."""
        weight, bias = self._affine(x)
        fits = kernels.run_on(x) and not self.fold.twice and self.fold.counts is None
        if not fits or x.dtype not in _DTYPES or weight.dtype != torch.float32 or weight.dim() != 2:
            return super().forward(x)
        recipe = self.site.recipe
        if recipe.kind == "layer" and not recipe.channel_first and self.site.batch_dim == 0 and x.is_contiguous():
            self.called = True
            return recipe.finish(kernels.token_norm(x, weight, bias, recipe.epsilon))
        images = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
        # CUDA's limit on the second dimension of a grid, and that of the kernels' 32-bit places.
        images = images and x.shape[0] < 2**16 and x.numel() < 2**31
        if images and (recipe.kind == "group" or (recipe.kind == "batch" and self.batch_statistics)):
            self._refuse_single_values(x)
            self.called = True
            relu = len(recipe.post) == 1 and type(recipe.post[0]) is nn.ReLU
            groups = recipe.groups if recipe.kind == "group" else None
            mask = self.fold.mask if groups is None else None
            out = kernels.channel_norm(x, weight, bias, groups=groups, eps=recipe.epsilon, relu=relu, mask=mask)
            return out if relu else recipe.finish(out)
        return super().forward(x)
