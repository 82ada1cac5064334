"""Makes what a session works with: its first state, engines, squads, the guard of a step."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from polytta.aggregate import evidence
from polytta.engine.guarding import Guarding
from polytta.engine.parts import Parts
from polytta.engine.squad import Squad
from polytta.engine.state import PopulationState
from polytta.engine.stream_start import StreamStart
from polytta.errors import ModelError
from polytta.guard import begin as begin_guard
from polytta.network.statistics import FEWEST_IMAGES, Statistics
from polytta.optim import pace
from polytta.particles import Engine, choose_engine
from polytta.particles.probe import Findings

if TYPE_CHECKING:
    from polytta.engine.session import Session


def first_state(session: "Session", num_classes: int) -> PopulationState:
    """The source model, everywhere; 0 classes leave open what depends on their number."""
    config = session.config
    theta = session.source.expand(config.rows, -1).clone()
    known = (torch.nan,) * config.rows if config.rates is None else config.rates.values
    rates = torch.tensor(known, dtype=torch.float64, device=theta.device)
    step = torch.zeros((), dtype=torch.int64, device=theta.device)
    relative = config.rates is not None and config.rates.relative
    state = PopulationState(theta, rates, step, session.optimizer.init(theta), pace.begin(theta) if relative else {})
    return _with_classes(session, state, num_classes) if num_classes else state


def begun(session: "Session", state: PopulationState, findings: Findings, batch: int) -> tuple[PopulationState, str]:
    """A state with what only a batch can tell, the method's memory and the learning rates, and their origin."""
    config, origin = session.config, session.rates_origin
    if not state.num_classes:
        state = _with_classes(session, state, findings.num_classes)
    if not state.has_rates:
        rates = config.reference_rates(findings.family(config.layers), batch)
        origin = rates.origin
        values = torch.tensor(rates.values, dtype=torch.float64, device=session.source.device)
        state = replace(state, learning_rates=values)
    return state, origin


def _with_classes(session: "Session", state: PopulationState, num_classes: int) -> PopulationState:
    config = session.config
    start = StreamStart(config.rows, num_classes, state.theta, session.source, session.network)
    memory = {
        config.method_prefix(method) + name: value.detach()
        for _, method, learns in config.squads()
        for name, value in (method.init(start).items() if learns else ())
    }
    known = evidence.begin(config.rows, num_classes, state.theta, by_fineness=config.aggregate.by_fineness)
    policy = session.watch.policy
    guard = {} if policy is None else begin_guard(policy, state.theta, num_classes)
    return replace(state, method=memory, evidence=known, guard=guard)


def anchor_rows(session: "Session") -> tuple[Tensor, Tensor]:
    """(G·K,) anchors and twins of the particles (``polytta.aggregate.evidence``)."""
    anchors = session.rows(session.config.anchors)
    # The same object where they are the same rows: evidence then has less to work out.
    same = session.config.twins == session.config.anchors
    return anchors, anchors if same else session.rows(session.config.twins)


def made_engine(session: "Session", x: Tensor, kinds: Sequence[Statistics], first: Engine | None) -> Engine:
    """An engine with these BatchNorm statistics, like the first one, or the first, now that the shapes are known."""
    config = session.config
    precision, at_once = config.settings.precision, config.settings.particles_at_once
    wary = session.watch.wary
    if first is not None:
        return type(first)(session.network, session.layout, first.findings, kinds, precision, at_once, wary=wary)
    _require_differentiable_lenses(session, x)
    engine_class = choose_engine(config.settings.engine, session.source.device)
    findings = engine_class.examine(session.network, x[:1], config.layers)
    known = session.state.num_classes
    if known and known != findings.num_classes:
        raise ModelError(f"num_classes: got {known}; allowed are {findings.num_classes}, as the model has.")
    return engine_class(session.network, session.layout, findings, kinds, precision, at_once, wary=wary)


def statistics_for(session: "Session", images: int, sides: Sequence[int]) -> tuple[Statistics, ...]:
    """What BatchNorm layers of each particle use on so many images: stored ones where these are of one class."""
    config, kinds = session.config, session.config.statistics
    if config.blends_small_batches and images < FEWEST_IMAGES:
        session.few_images.said()
        kinds = tuple("blend" if kind == "batch" else kind for kind in kinds)
    return tuple(
        "source" if sides[number // config.particles] else kind
        for number, kind in enumerate(kinds * config.populations)
    )


def made_guarding(session: "Session", engine: Engine) -> Guarding | None:
    """What the guard of a step needs; None without one."""
    watch = session.watch
    if watch.policy is None:
        return None
    awake = [n % session.particles not in session.asleep for n in range(session.config.rows)]
    learners = watch.learners & torch.tensor(awake, device=session.source.device)
    examiner = engine.examiner_class(watch.policy, session.source, learners, session.anchors[1], watch.weighed)
    return Guarding(examiner, first_state(session, engine.findings.num_classes))


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
