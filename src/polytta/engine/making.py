"""Makes what a session works with: engines, squads, the guard of a step; and says what is known of the hypotheses."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from polytta.aggregate import evidence
from polytta.engine.guarding import Guarding
from polytta.engine.parts import Parts
from polytta.engine.squad import Squad
from polytta.engine.stream_start import StreamStart
from polytta.errors import ModelError
from polytta.network.statistics import Statistics
from polytta.particles import Engine, choose_engine
from polytta.report import Hypothesis

if TYPE_CHECKING:
    from polytta.engine.session import Session


def made_engine(session: "Session", x: Tensor) -> Engine:
    """The engine, when the shapes are known."""
    config = session.config
    _require_differentiable_lenses(session, x)
    engine_class = choose_engine(config.settings.engine, session.source.device)
    findings = engine_class.examine(session.network, x[:1], config.layers)
    known = session.state.num_classes
    if known and known != findings.num_classes:
        raise ModelError(f"num_classes: got {known}; allowed are {findings.num_classes}, as the model has.")
    precision, at_once = config.settings.precision, config.settings.particles_at_once
    kinds = config.statistics * config.populations
    return engine_class(session.network, session.layout, findings, kinds, precision, at_once)


def engine_with_stored(session: "Session", first: Engine, stored: frozenset[int]) -> Engine:
    """Another engine over the same network, with stored statistics for these populations."""
    config = session.config
    kinds: list[Statistics] = [
        "source" if number // config.particles in stored else kind
        for number, kind in enumerate(config.statistics * config.populations)
    ]
    return type(first)(session.network, session.layout, first.findings, kinds, first.precision, first.at_once)


def made_guarding(session: "Session", num_classes: int) -> Guarding | None:
    """What the guard of a step needs; None without one."""
    watch = session.watch
    if watch.policy is None:
        return None
    awake = [n % session.particles not in session.asleep for n in range(session.config.rows)]
    learners = watch.learners & torch.tensor(awake, device=session.source.device)
    begun = session.expected_state(num_classes)
    return Guarding(watch.policy, learners, session.anchors[1], watch.weighed, session.source, begun.method)


def made_squads(session: "Session") -> tuple[Squad, ...]:
    """The particles by how they learn."""
    config, found = session.config, []
    groups = config.squads(session.asleep)
    for numbers, method, learns in groups:
        start = StreamStart(config.rows, 2, session.state.theta, session.source, session.network)
        names = tuple(method.init(start)) if learns else ()
        parts = Parts.of(config, method, numbers, names, session.source, session.network)
        found.append(Squad(parts, session.rows(numbers) if len(groups) > 1 else None, learns))
    return tuple(found)


def _require_differentiable_lenses(session: "Session", x: Tensor) -> None:
    """Particles that look differently are compared by the images before their lenses, by some diversifiers."""
    lenses, diversity, particles = session.config.lenses, session.config.diversity, session.particles
    if diversity.needs_input_gradient and lenses.differ(particles):
        lenses.require_slopes(x, particles, diversity.name, twice=diversity.differentiates_twice(x))


def told_hypotheses(session: "Session") -> tuple[Hypothesis, ...]:
    """What is known of the particles of the one population."""
    config, count = session.config, session.particles
    known = evidence.with_anchors(session.state.evidence, *session.anchors)
    weights = evidence.standing(known)[0].tolist() if "fine_images" in known and session.steps else [1 / count] * count
    silent, restarts = config.never_learn | session.asleep, session.ledger.totals.restarts or (0,) * count
    return tuple(
        Hypothesis(n, axes, weights[n], n not in silent and config.methods[n].adapts, restarts[n])
        for n, axes in enumerate(config.axes())
    )
