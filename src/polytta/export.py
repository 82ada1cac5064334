"""From an adapter back to a plain module: for export, serving without adaptation, or comparison."""

import operator
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from polytta.aggregate import evidence
from polytta.engine.step import detail_of
from polytta.errors import ConfigError
from polytta.methods import Method
from polytta.network.copies import share_structure
from polytta.network.features import keep_features
from polytta.network.statistics import use_statistics
from polytta.particles.folded import FoldedEngine
from polytta.particles.precision import plain_attention
from polytta.views import View

if TYPE_CHECKING:
    from polytta.adapter import Adapted

Which = Literal["merged", "best", "ensemble"] | int


class FrozenEnsemble(nn.Module):
    """All K particles as one module without adaptation: (B, ...) images to (B, C) log-probabilities."""

    theta: Tensor
    pseudo_images: Tensor | None
    by_median: Tensor | None
    engine: FoldedEngine

    def __init__(self, adapted: "Adapted", engine: FoldedEngine) -> None:
        super().__init__()
        self.network = engine.network
        keep_features(self.network)
        self.__dict__["engine"] = engine
        squads = adapted.config.squads()
        self.corrections = [(rows, method) for rows, method, _ in squads if type(method).answer is not Method.answer]
        self.aggregate = adapted.config.aggregate
        self.views = adapted.config.views
        self.lenses = adapted.config.lenses
        self.register_buffer("theta", adapted.theta.detach().clone())
        # torch.export loses count of buffers that are None.
        for name in ("pseudo_images", "by_median"):
            held = getattr(engine, name)
            if held is None:
                setattr(self, name, None)
            else:
                self.register_buffer(name, held)
        known = evidence.with_anchors(adapted.evidence, *adapted.anchors)
        for name, value in known.items():
            self.register_buffer(f"evidence_{name}", value.clone())
        self.evidence_names = tuple(known)

    def forward(self, x: Tensor) -> Tensor:
        """Predicts."""
        mask = None if self.pseudo_images is None else x.new_ones(self.theta.shape[0], x.shape[0], dtype=torch.bool)
        about = {"mask": mask, "pseudo_images": self.pseudo_images, "by_median": self.by_median}
        with self.engine.a_pass(self.theta, **about):
            logits = self.views.combine([self._logits(view) for view in self.views.of(x, to_predict=True)])
        known = {name: self.get_buffer(f"evidence_{name}") for name in self.evidence_names}
        told = logits
        for rows, method in self.corrections:
            own = torch.tensor(rows, device=logits.device)
            told = told.index_copy(0, own, method.answer(logits[own]))
        detail = detail_of(x.unsqueeze(0), self.aggregate)
        if known:
            known = dict(evidence.with_batch(known, evidence.observe(known, told, detail)))
        return self.aggregate.combine(told.unsqueeze(0), known, detail)[0]

    def _logits(self, x: Tensor) -> Tensor:
        particles = self.theta.shape[0]
        with plain_attention():
            return self.network(self.lenses.of(x, particles).flatten(0, 1)).unflatten(0, (particles, -1))


class FrozenParticle(nn.Module):
    """One model behind its lens: (B, ...) images to (B, C) log-probabilities."""

    def __init__(self, lens: View, network: nn.Module) -> None:
        super().__init__()
        self.lens = lens
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Predicts."""
        logits: Tensor = self.network(self.lens(x))
        return logits.log_softmax(dim=-1)


def row_of(adapted: "Adapted", index: object) -> int:
    """The row of a particle of G·K; from the end where it is negative."""
    rows = adapted.config.rows
    try:
        row = rows if isinstance(index, bool) else operator.index(index)  # type: ignore[arg-type]
    except TypeError:
        row = rows
    if not -rows <= row < rows:
        raise ConfigError(f"index: got {index!r}; allowed are particles 0..{rows - 1}.")
    return row


def require_one_population(adapted: "Adapted", what: str) -> None:
    """Refuses to make one model of populations that have nothing to do with each other."""
    if adapted.config.populations > 1:
        raise ConfigError(f"{what}: got an adapter of {adapted.config.populations} populations; allowed is one.")


def require_lasting(adapted: "Adapted", what: str) -> None:
    """Refuses to make a model of what a method forgets at the next batch."""
    if adapted.config.episodic:
        raise ConfigError(f"{what}: got an episodic method; allowed are methods that keep what they have learnt.")
    if adapted.config.templates is not None:
        raise ConfigError(f"{what}: got prompts 'own'; allowed is 'mean'.")
    remembering = [method.name for method in adapted.config.methods if method.adapts and not method.descends]
    if remembering:
        raise ConfigError(
            f"{what}: got {remembering[0]!r}, which answers from more than parameters; allowed are methods that learn "
            "these."
        )


def freeze(adapted: "Adapted", which: Which) -> nn.Module:
    """A plain module that never changes, from images to log-probabilities, with weights of its own.

    Args:
        adapted: the adapter; it is left as it is.
        which: "ensemble" answers as the adapter would, all K particles folded into the batch; "best" takes the particle
            with the most evidence, a number takes that particle, and "merged" averages the particles' parameters, each
            of them one model behind its lens, at the cost of one and without views.
    """
    require_one_population(adapted, "freeze")
    require_lasting(adapted, "freeze")
    # An array would be compared value by value.
    if isinstance(which, bool) or not isinstance(which, str | int):
        raise ConfigError(f"which: got {which!r}; allowed are 'merged', 'best', 'ensemble' or a number.")
    if which == "ensemble":
        return _on_its_own(FrozenEnsemble(adapted, adapted.folded_engine()).eval())
    number = 0
    if which == "merged":
        lens = _common_lens(adapted)
        vector = adapted.theta.mean(dim=0)
    elif which == "best" or (isinstance(which, int) and 0 <= which < adapted.config.particles):
        number = adapted.best() if which == "best" else which
        vector, lens = adapted.theta[number], adapted.config.lenses.of_particle(number)
    else:
        last = adapted.config.particles - 1
        raise ConfigError(f"which: got {which!r}; allowed are 'merged', 'best', 'ensemble' or a particle 0..{last}.")
    network = share_structure(adapted.source_network)
    use_statistics(network, adapted._session.statistics[number])
    with torch.no_grad():
        for name, value in adapted.layout.named(vector).items():
            layer, _, kind = name.rpartition(".")
            setattr(network.get_submodule(layer), kind, nn.Parameter(value.clone(), requires_grad=False))
    return FrozenParticle(lens, _on_its_own(network)).eval()


def _on_its_own(network: nn.Module) -> nn.Module:
    """Whoever trains the source model later changes nothing here."""
    for parameter in network.parameters():
        parameter.data = parameter.data.clone()
    return network


def _common_lens(adapted: "Adapted") -> View:
    """The lens all particles look through; parameters learnt through different ones have no meaningful mean."""
    lenses = adapted.config.lenses
    if lenses.differ(adapted.config.particles) or len(set(adapted.config.statistics)) > 1:
        raise ConfigError(
            "which: got 'merged' for particles with different lenses or statistics; allowed are 'ensemble', 'best' or "
            "a number."
        )
    return lenses.of_particle(0)
