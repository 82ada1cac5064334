"""All particles in one pass: K·B rows through the shared trunk, K affines in its norm layers.

Everything but the norm parameters is the same for all particles, so the trunk cannot tell a population from a larger
batch. Work that nobody needs is left out: with ``where`` only the wanted (particle, sample) pairs become rows. In the
static variant every pass has the full K·B rows instead and ``where`` only weights batch statistics, so that a step has
the same shapes every time and can be captured.
"""

from contextlib import AbstractContextManager
from typing import Any, ClassVar

import torch
from torch import Tensor

from polytta.errors import ModelError
from polytta.guard import Examiner, HostExaminer
from polytta.network.replacement import replace_everywhere
from polytta.particles.engine import Engine
from polytta.particles.fold import Affine, CurrentFold, Fold
from polytta.particles.folded_norm import FoldedNorm


class FoldedEngine(Engine):
    """Folds particles into the batch dimension."""

    name: ClassVar[str] = "folded"
    examiner_class: ClassVar[type[Examiner]] = HostExaminer
    norm_class: ClassVar[type[FoldedNorm]] = FoldedNorm
    """What replaces a norm layer."""
    fold_class: ClassVar[type[Fold]] = Fold
    """What tells it of the pass it is in."""

    def _set_up(self) -> None:
        self.current = CurrentFold()
        self.norms: list[FoldedNorm] = []
        self._checked = False
        self._slots = [(slot.layer, slot.kind == "bias", slot.shape) for slot in self.layout.slots]
        self._sizes = self.layout.sizes
        for name, site in self.findings.sites.items():
            of_batch = name in self.statistics_layers
            if not self._replaces(name):
                continue
            layer = self.network.get_submodule(name)
            norm = self.norm_class(layer, site, self.current, name, batch_statistics=of_batch)
            replace_everywhere(self.network, layer, norm.eval())
            self.norms.append(norm)

    def _replaces(self, layer: str) -> bool:
        """Whether a norm layer must be told of particles: it adapts, or takes statistics of the batch."""
        return layer in self.statistics_layers or any(layer == slot.layer for slot in self.layout.slots)

    def _run(self, theta: Tensor, x: Tensor, where: Tensor | None, rows: Tensor | None, twice: bool) -> Tensor:
        particles, batch = x.shape[:2]
        pseudo, by_median = self._row_statistics(rows)
        if where is None or self.static_shapes:
            mask = where if self.uses_batch_statistics else None
            if mask is None and pseudo is not None:
                mask = x.new_ones(particles, batch, dtype=torch.bool)
            about: dict[str, Any] = {"mask": mask, "partial": where is not None, "company": self._company(mask)}
            with self.a_pass(theta, twice=twice, pseudo_images=pseudo, by_median=by_median, **about):
                out = self._forward(x.reshape(particles * batch, *x.shape[2:]))
            self._check_all_were_called()
            return out.unflatten(0, (particles, batch))
        counts = tuple(where.sum(dim=1).tolist())
        if sum(counts) == 0:
            return theta.new_zeros(particles, batch, self.width)
        unequal = None if len(set(counts)) == 1 and pseudo is None else counts
        about = {"counts": unequal, "partial": True, "company": self._company(None)}
        with self.a_pass(theta, twice=twice, pseudo_images=pseudo, by_median=by_median, **about):
            kept = self._forward(x[where])
        return kept.new_zeros(particles, batch, kept.shape[1]).index_put((where,), kept)

    def a_pass(self, theta: Tensor, **about: Any) -> AbstractContextManager[None]:
        """While inside, the norm layers are in a pass with these (K, P) parameters."""
        affine: Affine = {}
        parts = theta.split(self._sizes, dim=1)
        for (layer, is_bias, shape), part in zip(self._slots, parts, strict=True):
            values = part.reshape(-1, *shape)
            affine[layer] = (affine[layer][0], values) if is_bias and layer in affine else (values, None)
        return self.current.during(self.fold_class(theta.shape[0], affine, **about))

    def _check_all_were_called(self) -> None:
        """A model may keep a layer in a plain list and call it there, past its replacement."""
        if self._checked:
            return
        missed = [norm.name for norm in self.norms if not norm.called]
        if missed:
            raise ModelError(
                f"model: got norm layer {missed[0]!r} called in a way that its replacement does not see (from a list "
                "or a closure?); allowed are layers called as submodules, or engine='loop'."
            )
        self._checked = True


class StaticFoldedEngine(FoldedEngine):
    """Folded, with masks instead of fewer rows."""

    name: ClassVar[str] = "static"
    static_shapes: ClassVar[bool] = True
    examiner_class: ClassVar[type[Examiner]] = Examiner
