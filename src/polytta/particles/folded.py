"""All particles in one pass: K·B rows through the shared trunk, K affines in its norm layers.

Everything but the norm parameters is the same for all particles, so the trunk cannot tell a population from a larger
batch. Work that nobody needs is left out: with ``where`` only the wanted (particle, sample) pairs become rows. In the
static variant every pass has the full K·B rows instead and ``where`` only weights batch statistics, so that a step has
the same shapes every time and can be captured.
"""

from typing import ClassVar

from torch import Tensor

from polytta.errors import ModelError
from polytta.network.replacement import replace_everywhere
from polytta.particles.engine import Engine, Statistics
from polytta.particles.folded_norm import Fold, FoldedNorm


class FoldedEngine(Engine):
    """Folds particles into the batch dimension."""

    name: ClassVar[str] = "folded"
    stand_in: ClassVar[type[FoldedNorm]] = FoldedNorm
    """What replaces a norm layer."""

    def _set_up(self, statistics: Statistics) -> None:
        self.fold = Fold()
        self.stand_ins: list[FoldedNorm] = []
        self._checked = False
        adapted = {slot.layer for slot in self.layout.slots}
        for name, site in self.findings.sites.items():
            of_batch = name in self.statistics_layers
            if name not in adapted and not of_batch and not self.replaces_all:
                continue
            layer = self.network.get_submodule(name)
            stand_in = self.stand_in(layer, site, self.fold, name, batch_statistics=of_batch)
            replace_everywhere(self.network, layer, stand_in.eval())
            self.stand_ins.append(stand_in)

    def _run(self, theta: Tensor, x: Tensor, where: Tensor | None, twice: bool) -> Tensor:
        particles, batch = x.shape[:2]
        self.place(theta)
        self.fold.twice = twice
        self.fold.partial = where is not None
        self.fold.marks, self.fold.pending = {}, []
        if where is None or self.static_shapes:
            self.fold.counts = None
            self.fold.mask = where if self.uses_batch_statistics else None
            out = self._forward(x.reshape(particles * batch, *x.shape[2:]))
            self._check_all_were_called()
            return out.unflatten(0, (particles, batch))
        counts = tuple(where.sum(dim=1).tolist())
        if sum(counts) == 0:
            return theta.new_zeros(particles, batch, self.findings.num_classes)
        self.fold.mask = None
        self.fold.counts = None if len(set(counts)) == 1 else counts
        kept = self._forward(x[where])
        return kept.new_zeros(particles, batch, kept.shape[1]).index_put((where,), kept)

    def _check_all_were_called(self) -> None:
        """A model may keep a layer in a plain list and call it there, past its stand-in."""
        if self._checked:
            return
        missed = [stand_in.name for stand_in in self.stand_ins if not stand_in.called]
        if missed:
            raise ModelError(
                f"model: norm layer {missed[0]!r} is called in a way that its replacement does not see (from a list or "
                "a closure?); allowed are layers called as submodules, or engine='loop'."
            )
        self._checked = True

    def place(self, theta: Tensor) -> None:
        """Makes the norm layers use these (K, P) parameters."""
        self.fold.particles = theta.shape[0]
        placed: dict[str, list[Tensor | None]] = {}
        for slot, values in zip(self.layout.slots, self.layout.split(theta), strict=True):
            placed.setdefault(slot.layer, [None, None])[slot.kind == "bias"] = values
        self.fold.affine = {layer: (pair[0], pair[1]) for layer, pair in placed.items() if pair[0] is not None}


class StaticFoldedEngine(FoldedEngine):
    """Folded, with masks instead of fewer rows."""

    name: ClassVar[str] = "static"
    static_shapes: ClassVar[bool] = True
