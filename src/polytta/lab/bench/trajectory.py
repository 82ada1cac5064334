"""Where the particles of a run were, at a few checkpoints."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polytta.lab.bench.population import Population
from polytta.lab.bench.record import Particles
from polytta.report.measures import pairwise_distances

WINDOWS = 50
CHECKPOINTS = 20


class Trajectory:
    """Distances from the source at the end of each window of the stream, and positions at fewer checkpoints."""

    def __init__(self, steps: int, population: Population) -> None:
        self.ends: list[int] = []
        self._population = population
        self._windows = _evenly(steps, WINDOWS)
        # Positions are taken at the end of windows only, so that both tell of the same moments.
        places = sorted(self._windows)
        self._checkpoints = {places[number - 1] for number in _evenly(len(places), CHECKPOINTS)}
        self._step = self._images = 0
        self._drifts: list[Tensor] = []
        self._positions: list[Tensor] = []
        self._weights: list[Tensor] = []

    def after_step(self, images: int) -> None:
        """Looks at the population where a window ends; ``images`` is the size of the batch just seen."""
        self._step += 1
        self._images += images
        if self._step in self._windows:
            moved = self._population.theta() - self._population.source
            self.ends.append(self._images)
            self._drifts.append(moved.norm(dim=-1).cpu())
            weights = self._population.weights()
            if weights is not None:
                self._weights.append(weights.cpu())
            if self._step in self._checkpoints:
                self._positions.append(moved.float().cpu())

    def drift(self, number: int) -> tuple[tuple[float, ...], ...]:
        """Distances of one cell's particles from the source, at each window's end."""
        return tuple(tuple(drift[number].tolist()) for drift in self._drifts)

    def weights(self, number: int) -> tuple[tuple[float, ...], ...]:
        """How much one cell's particles are trusted at each window's end; nothing where evidence weighs nobody."""
        return tuple(tuple(weights[number].tolist()) for weights in self._weights)

    def particles(self, number: int) -> Particles:
        """Where one cell's particles went."""
        moved = torch.stack([position[number] for position in self._positions]).double().numpy()
        kernel = self._population.kernel(number)
        return Particles(
            projection=tuple(tuple((x, y) for x, y in row) for row in _projected(moved).tolist()),
            pairwise=_rows(pairwise_distances(self._population.theta()[number])),
            kernel=None if kernel is None else _rows(kernel),
            **self._population.trust(number),
        )


def _evenly(steps: int, wanted: int) -> set[int]:
    """At most ``wanted`` steps, evenly spaced, counted from 1; the last is always one of them."""
    return {int(step) for step in np.ceil(np.linspace(0, steps, min(wanted, steps) + 1)[1:])}


def _rows(square: Tensor) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in square.double().tolist())


def _projected(moved: NDArray[np.float64]) -> NDArray[np.float64]:
    """(T, K, 2) coordinates on the two main directions of (T, K, P) displacements, not centred: 0 is the source."""
    times, particles, _ = moved.shape
    flat = moved.reshape(times * particles, -1)
    # The main directions of few points in many dimensions come from the small matrix of their products.
    values, vectors = np.linalg.eigh(flat @ flat.T)
    if len(values) == 1:
        values, vectors = np.append(0.0, values), np.column_stack([np.zeros_like(vectors), vectors])
    top = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0))
    # A direction has no sign of its own; the farthest point goes to the positive side.
    signs = np.sign(top[np.abs(top).argmax(axis=0), [0, 1]])
    return (top * np.where(signs == 0, 1, signs)).reshape(times, particles, 2)
