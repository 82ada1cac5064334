"""One adapter behind a cell, or behind several folded into one batch: the rest of a run need not know which."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from polytta.aggregate import evidence
from polytta.api import adapt_with
from polytta.errors import StateError
from polytta.lab.bench.plan import Plan, source_model
from polytta.network.copies import unwrap
from polytta.settings import resolve
from polytta.settings.plain import plugin_sources


@dataclass(frozen=True)
class Counts:
    """Sums over the stream for one cell; see ``record.CellResults``."""

    selected: dict[str, tuple[int, ...]]
    stepped: tuple[int, ...]
    resets: tuple[int, ...]
    forward_samples: int
    backward_samples: int


class Population:
    """G cells of K particles each, over one network."""

    def __init__(self, plans: Sequence[Plan], device: str, engine: str) -> None:
        first = plans[0].cell
        source = source_model(first, device)
        self.cells, self.particles = len(plans), plans[0].particles
        settings = first.to_settings(num_classes=source.num_classes, engine=engine)
        if len(plans) > 1:
            # Rates differ from cell to cell, and then say nothing of axes that could be multiplied.
            decided = resolve(settings, unwrap(source.module)).settings
            name = plans[0].rates[0]
            rates = tuple(rate for plan in plans for rate in plan.rates[1])
            together: dict[str, Any] = {"seed": tuple(plan.cell.seed for plan in plans), name: rates}
            settings = replace(decided, populations=len(plans), **together)
        self.adapted = adapt_with(settings, source.module)
        if plugin_sources(self.adapted.settings) != plans[0].pins.get("plugins", {}):
            raise StateError(
                "plugins: got a file that has changed since the cell was planned; allowed is to run it again."
            )

    def step(self, x: Tensor) -> Tensor:
        """(G, B, ...) images to (G, B, C) log-probabilities; then learns."""
        return self.adapted(x) if self.cells > 1 else self.adapted(x[0]).unsqueeze(0)

    def logits(self) -> Tensor | None:
        """(G, K, B', C) of the usable images of the last step."""
        logits = self.adapted.last_logits
        return None if logits is None else logits.unflatten(0, (self.cells, self.particles))

    def theta(self) -> Tensor:
        """(G, K, P) parameters."""
        return self.adapted.theta.unflatten(0, (self.cells, self.particles))

    @property
    def source(self) -> Tensor:
        """(P,) parameters of the source model."""
        return self.adapted.source

    def kernel(self, number: int) -> Tensor | None:
        """(K, K) similarity of one cell's particles."""
        return self.adapted.config.diversity.kernel_matrix(self.theta()[number])

    def trust(self, number: int) -> dict[str, Any]:
        """Names and weights of one cell's particles; nothing where evidence weighs nobody."""
        weights = self.weights()
        if weights is None:
            return {}
        names = tuple(" x ".join(axes.values()) for axes in self.adapted.config.axes())
        return {"names": names, "weights": tuple(weights[number].tolist())}

    def weights(self) -> Tensor | None:
        """(G, K) how much each particle is trusted now; None where evidence weighs nobody."""
        known = self.adapted.evidence
        if "fine_images" not in known:
            return None
        return evidence.standing(evidence.with_anchors(known, *self.adapted.anchors), self.cells)

    def counts(self, number: int) -> Counts:
        """Sums over the stream for one cell."""
        totals = self.adapted.totals
        own = slice(number * self.particles, (number + 1) * self.particles)
        return Counts(
            {name: counts[own] for name, counts in totals.selected.items()},
            totals.stepped[own],
            totals.resets[own],
            sum(totals.forward_by_particle[own]),
            sum(totals.backward_by_particle[own]),
        )
