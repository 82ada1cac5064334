"""Norm layers whose scale and shift depend on the particle a row belongs to."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polytta.errors import InputError
from polytta.network.medians import medians, row_moments
from polytta.network.neighbours import Seen, moments
from polytta.network.replacement import Replacement
from polytta.network.statistics import blended
from polytta.particles.counted_norm import counted_norm, pooled, scale_and_shift
from polytta.particles.fold import CurrentFold, Fold
from polytta.particles.probe import NormSite


class FoldedNorm(Replacement):
    """Takes the place of a norm layer.

    Args:
        inner: the layer replaced.
        site: what it computes and where its batch is.
        current: the pass under way.
        name: the layer's key in ``fold.affine``.
        batch_statistics: for BatchNorm, use the statistics of the particle's own rows.
    """

    def __init__(
        self, inner: nn.Module, site: NormSite, current: CurrentFold, name: str, *, batch_statistics: bool
    ) -> None:
        super().__init__(inner)
        self.site = site
        # Not a submodule's affair, and shared by copies of the tree: see ``polytta.particles.fold``.
        self.current = current
        self.epsilon = site.recipe.epsilon
        self.name = name
        self.batch_statistics = batch_statistics
        self.called = False

    def forward(self, x: Tensor) -> Tensor:
        """The layer, each row with its own particle's affine."""
        self.called = True
        recipe = self.site.recipe
        entering = x.dtype
        weight, bias = self._affine(x)
        # Particles are float32 at least, so that a bfloat16 trunk still has norm layers of full precision.
        working = torch.promote_types(x.dtype, torch.float32 if recipe.in_float32 else weight.dtype)
        x, weight, bias = x.to(working), weight.to(working), None if bias is None else bias.to(working)
        if recipe.kind == "batch":
            out = self._batch(x, weight, bias)
        elif recipe.kind == "group":
            out = self._group(x, weight, bias)
        elif self._fits_fused_layer_norm(x):
            out = self._layer(x, weight, bias)
        else:
            out = self._affine_rows(recipe.normalize(x), weight, bias)
        out = out.to(entering)
        return recipe.finish(out) if recipe.post else out

    @property
    def fold(self) -> Fold:
        """The pass under way."""
        return self.current.fold

    def _affine(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        if self.name in self.fold.affine:
            weight, bias = self.fold.affine[self.name]
        else:
            own, own_bias = self.inner._parameters.get("weight"), self.inner._parameters.get("bias")
            source = x.new_ones(self.site.recipe.shape) if own is None else own
            weight = source.expand(self.fold.particles, *source.shape)
            bias = None if own_bias is None else own_bias.expand(self.fold.particles, *own_bias.shape)
        return weight, bias

    def _affine_rows(self, normalized: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """normalized * weight + bias, with the affine's rows laid along the batch dimension."""
        dim, recipe = self.site.batch_dim, self.site.recipe
        size = normalized.shape[dim]
        view = [1] * normalized.dim()
        view[dim] = size
        if recipe.channel_first:
            view[1] = recipe.shape[0]
        else:
            view[normalized.dim() - len(recipe.shape) :] = recipe.shape
        scale = self.fold.rows(weight, size).reshape(view)
        if bias is None:
            return normalized * scale
        return torch.addcmul(self.fold.rows(bias, size).reshape(view), normalized, scale)

    def _fits_fused_layer_norm(self, x: Tensor) -> bool:
        """On a CPU one fused call per particle beats one pass to normalize and another to scale."""
        recipe = self.site.recipe
        plain = recipe.kind == "layer" and not recipe.channel_first and self.site.batch_dim == 0
        return (
            plain and x.device.type == "cpu" and x.shape[0] > self.fold.particles and not torch.compiler.is_exporting()
        )

    def _layer(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        recipe = self.site.recipe
        eps = self.epsilon
        parts = x.split(self.fold.row_counts(x.shape[0]))
        shifts = [None] * len(parts) if bias is None else bias.unbind()
        return torch.cat(
            [
                F.layer_norm(rows, recipe.shape, scale, shift, eps)
                for rows, scale, shift in zip(parts, weight.unbind(), shifts, strict=True)
                if rows.shape[0]
            ]
        )

    def _group(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """All rows' groups as groups of one sample, which lets the fused kernel apply a different affine per row."""
        size, recipe = x.shape[0], self.site.recipe
        if torch.compiler.is_exporting():
            # A number of groups that depends on the batch would fix the batch size of an exported program.
            eps = self.epsilon
            return self._affine_rows(F.group_norm(x, recipe.groups, None, None, eps), weight, bias)
        flat = x.reshape(1, size * x.shape[1], *x.shape[2:])
        scale = self.fold.rows(weight, size).reshape(-1)
        shift = None if bias is None else self.fold.rows(bias, size).reshape(-1)
        eps = self.epsilon
        return F.group_norm(flat, size * recipe.groups, scale, shift, eps).reshape(x.shape)

    def _batch(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        eps = self.epsilon
        stored = self.inner.running_mean is not None
        if self.fold.pseudo_images is not None and stored:
            return self._blended(x, weight, bias)
        if not self.batch_statistics:
            mean, var = self.inner.running_mean, self.inner.running_var
            if isinstance(mean, Tensor) and isinstance(var, Tensor):
                mean, var = mean.to(x.dtype), var.to(x.dtype)
            normalized = F.batch_norm(x, mean, var, None, None, training=mean is None, eps=eps)  # type: ignore[arg-type]
            return self._affine_rows(normalized, weight, bias)
        counted, counts = self._counted(x), self.fold.row_counts(x.shape[0])
        if counted is not None and self.fold.counts is None and not self.fold.twice:
            rows = _for_windows(counted, x.shape[0] // counted.numel()).to(x.dtype)
            return counted_norm(x, weight, bias, rows, eps)
        if counted is not None:
            mean, var = self._moments(x, counted)
            return self._scaled(x, mean, var, weight, bias)
        self._refuse_single_values(x)
        if max(counts) == 1 and x[0].numel() > x.shape[1] and min(counts) == 1:
            # One row each: the particles' channels side by side are one wider sample, with no copy.
            flat = x.reshape(1, x.shape[0] * x.shape[1], *x.shape[2:])
            shift = None if bias is None else bias.reshape(-1)
            return F.batch_norm(flat, None, None, weight.reshape(-1), shift, training=True, eps=eps).reshape(x.shape)
        parts = []
        for k, rows in enumerate(x.split(counts)):
            if rows.shape[0] == 0:
                continue
            shift = None if bias is None else bias[k]
            if rows.numel() == rows.shape[1]:
                parts.append((rows - rows).add(0.0 if shift is None else shift.reshape(1, -1, *[1] * (x.dim() - 2))))
            else:
                parts.append(F.batch_norm(rows, None, None, weight[k], shift, training=True, eps=eps))
        return torch.cat(parts)

    def _blended(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Every row by what its particle makes of stored statistics and those of its own rows, and the affine."""
        stored_mean, stored_var = self.inner.running_mean, self.inner.running_var
        assert isinstance(stored_mean, Tensor)
        assert isinstance(stored_var, Tensor)
        assert self.fold.pseudo_images is not None
        counted = self._counted(x)
        mean, var = self._moments(x, counted)
        if counted is None:
            images = torch.tensor(self.fold.counts, dtype=x.dtype, device=x.device).unsqueeze(1)
        else:
            images = counted.sum(dim=1, keepdim=True).to(x.dtype)
        pseudo, images = self.fold.pseudo_images.to(x.dtype).unsqueeze(1), images.clamp(min=1)
        mean = blended(mean, stored_mean.to(x.dtype), images, pseudo)
        var = blended(var, stored_var.to(x.dtype), images, pseudo)
        return self._scaled(x, mean, var, weight, bias)

    def _scaled(self, x: Tensor, mean: Tensor, var: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Every row by the statistics (K, C) of its particle, and the affine."""
        scale, shift = scale_and_shift(mean, torch.rsqrt(var + self.epsilon), weight, bias)
        view, size = [x.shape[0], -1, *[1] * (x.dim() - 2)], x.shape[0]
        return torch.addcmul(self.fold.rows(shift, size).reshape(view), x, self.fold.rows(scale, size).reshape(view))

    def _moments(self, x: Tensor, who: Tensor | None) -> tuple[Tensor, Tensor]:
        """(K, C) mean and variance of the particles' rows of the images marked (K, B); None means all."""
        fold = self.fold
        # Of every row first, which takes one pass over the images; the rest is small.
        mean, var = row_moments(x)
        if fold.counts is not None:
            counts, counted = fold.row_counts(x.shape[0]), torch.ones_like(mean[:, :1])
            if who is not None:
                there = torch.cat([own[:images] for own, images in zip(who, fold.counts, strict=True)])
                counted = _for_windows(there, x.shape[0] // sum(fold.counts)).to(x.dtype).unsqueeze(1)
            parts = zip(mean.split(counts), var.split(counts), counted.split(counts), strict=True)
            found = []
            for k, (means, variances, own) in enumerate(parts):
                found.append(self._joined(means[None], variances[None], own[None], slice(k, k + 1)))
            return torch.cat([one[0] for one in found]), torch.cat([one[1] for one in found])
        assert who is not None
        counted = _for_windows(who, x.shape[0] // who.numel()).to(x.dtype).unsqueeze(-1)
        rows, spreads = (one.reshape(fold.particles, -1, x.shape[1]) for one in (mean, var))
        return self._joined(rows, spreads, counted, slice(None))

    def _joined(self, means: Tensor, variances: Tensor, counted: Tensor, whose: slice) -> tuple[Tensor, Tensor]:
        """(K', C) statistics of the rows that count, of some of the particles, from moments of the rows (K', N, C)."""
        mean, var = pooled(means, variances, counted, dim=1)
        if self.fold.by_median is None:
            return mean, var
        robust = medians(means, variances, counted.squeeze(-1) > 0)
        theirs = self.fold.by_median[whose].unsqueeze(1)
        return torch.where(theirs, robust[0], mean), torch.where(theirs, robust[1], var)

    def _counted(self, x: Tensor) -> Tensor | None:
        """(K, B) which of their images count for the particles' batch statistics; None means all."""
        company = self.fold.company
        return self.fold.mask if company is None else company.counted(self.name, partial(self._look, x))

    def _look(self, x: Tensor) -> Seen | None:
        """Mean and variance of the images of each particle, and which of them are there."""
        fold, images = self.fold, x.shape[0]
        if fold.counts is not None and images != sum(fold.counts):  # windows of images
            return None
        if fold.mask is not None and images != fold.mask.numel():
            return None
        mean, var = moments(x)
        if fold.counts is None:
            each = (fold.particles, images // fold.particles)
            return mean.unflatten(0, each), var.unflatten(0, each), fold.mask
        places = torch.arange(max(fold.counts), device=x.device)
        among = torch.stack([places < count for count in fold.counts])
        room = mean.new_zeros(*among.shape, mean.shape[1])
        return room.index_put((among,), mean), room.index_put((among,), var), among

    def _refuse_single_values(self, x: Tensor) -> None:
        """One value per channel has no variance; only what a filter left over may be that few."""
        values = x.numel() // x.shape[1] // self.fold.particles
        if self.site.recipe.kind == "batch" and values == 1 and self.fold.counts is None and not self.fold.partial:
            raise InputError(
                f"x: got a batch of 1, for which BatchNorm layer {self.name!r} has one value per channel; allowed are "
                "batches of >= 2, or adapt(..., statistics='source')."
            )


def _for_windows(who: Tensor, each: int) -> Tensor:
    """(..., B·each) marks of images (..., B), for all windows of them."""
    return who.unsqueeze(-1).expand(*who.shape, each).flatten(-2)
