"""One whole step as a pure function: a state and a batch in, an answer and the next state out.

Nothing here reads a value back to the host (given an engine of static shapes), so that a step can also be recorded
once as a CUDA graph and replayed (``polytta.gpu.capture``).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from polytta.aggregate import aggregate, evidence
from polytta.guard import all_in_range
from polytta.methods.base import Proposal
from polytta.optim import PopulationOptimizer
from polytta.particles import Engine
from polytta.report import pack
from polytta.step import Rules, Step

State = dict[str, Tensor]


def group(state: Mapping[str, Tensor], name: str) -> State:
    """The tensors of one owner ("optimizer", "method", "evidence"), by their own names."""
    prefix = f"{name}_"
    return {key[len(prefix) :]: value for key, value in state.items() if key.startswith(prefix)}


@dataclass(frozen=True)
class Advance:
    """What a step gives.

    Attributes:
        answer: (G, B, C) log-probabilities of each population before it learnt.
        logits: (G·K, B, C) of the particles.
        numbers: what the report says, packed (``polytta.report.pack``).
        measures: what the diversifier found out.
        state: the tensors after the step.
    """

    answer: Tensor
    logits: Tensor
    numbers: Tensor
    measures: dict[str, Tensor]
    state: State


@dataclass(frozen=True)
class Advancer:
    """Everything a step needs besides state and batch.

    Attributes:
        engine: runs the passes.
        rules: method, diversifier, views.
        optimizer: moves the particles.
        source: (P,) source parameters.
        how: name of the aggregate.
        guarded: leave the state as it is when the batch has values nothing should be learnt from; for steps that start
            before anybody has looked at the batch.
    """

    engine: Engine
    rules: Rules
    optimizer: PopulationOptimizer
    source: Tensor
    how: str
    guarded: bool = False

    def __call__(self, state: State, x: Tensor) -> Advance:
        """Predicts on ``x`` (G, B, ...) and learns from it."""
        theta = state["theta"]
        work = Step(self.engine, self.rules, theta, self.source, x, state["step"])
        proposal = self.rules.method.update(work, group(state, "method"))
        after = {**state, "step": state["step"] + 1, **self._moved(state, proposal, work.healthy)}
        logits = proposal.logits.detach()
        observed = group(state, "evidence")
        by_population = logits.unflatten(0, (self.rules.populations, -1))
        answer = aggregate(self.how, by_population, observed)
        after |= {f"evidence_{name}": value for name, value in evidence.observe(observed, logits).items()}
        moved = (after["theta"] != theta).any(dim=1)
        numbers = pack(proposal, moved, work.forward_samples, work.backward_samples)
        measures = {name: value.detach() for name, value in work.measures.items()}
        changed = {name: value.detach() for name, value in after.items() if value is not state[name]}
        if self.guarded:
            fine = all_in_range(x)
            changed = {name: torch.where(fine, value, state[name]) for name, value in changed.items()}
        return Advance(answer, logits, numbers, measures, {**state, **changed})

    def _moved(self, state: State, proposal: Proposal, healthy: Tensor) -> State:
        """Tensors that change when particles move and reset."""
        if proposal.direction is None or proposal.moves is None:
            return {}
        theta, slots = self.optimizer.step(
            state["theta"],
            proposal.direction,
            group(state, "optimizer"),
            state["learning_rates"],
            proposal.moves & healthy,
            self.source,
        )
        if proposal.resets is not None:
            theta = torch.where(proposal.resets.unsqueeze(1), self.source, theta)
            if not proposal.keep_momentum:
                slots = self.optimizer.forget(slots, proposal.resets)
        return {
            "theta": theta,
            **{f"optimizer_{name}": value for name, value in slots.items()},
            **{f"method_{name}": value for name, value in proposal.state.items()},
        }
