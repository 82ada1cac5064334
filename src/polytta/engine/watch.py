"""What a session does for its guard besides the step: asks the source now and then, and looks at batches of one class.

A pass of the source costs about a third of a step, so it is asked about a few images now and then, at most a hundredth
of what steps cost. When is decided by the number of the step alone, so that a resumed stream asks at the same steps.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from polytta.engine.state import PopulationState
from polytta.engine.step import Step, StepResult
from polytta.guard import Default, compared
from polytta.network.one_sided import IMAGES, OneSided
from polytta.particles.outputs import model_errors_as_input_errors
from polytta.settings import Config

_SHARE = 32
"""Steps' worth of images between two looks at as many images as a step has."""
_COMPARED_IMAGES = 16
_ON_GPU = 4
"""Looks are not recorded, so there they are rarer."""
_EAGER_STEPS = 4
"""First steps, at all of which batches are looked at."""
_LOOKS_KEPT = 8
"""Looks that must find images of many classes before statistics of the batch are trusted again."""


class Watch:
    """The guard of a session.

    Args:
        config: what the adapter does.
        network: the frozen source network.
        source: (P,) its parameters.
        twins: (G·K,) for each row the one that looks alike and never learns, or its own.
    """

    def __init__(self, config: Config, network: nn.Module, source: Tensor, twins: Tensor) -> None:
        self._config, self._source = config, source
        self.policy = config.guard if isinstance(config.guard, Default) else None
        numbers = {number for own, method, learns in config.squads() if learns and method.descends for number in own}
        learns = [n % config.particles in numbers and not config.episodic for n in range(config.rows)]
        self.learners = torch.tensor(learns, device=source.device)
        own_twin = [twin == row for row, twin in enumerate(twins.tolist())]
        weighed = config.aggregate.by_fineness
        self.weighed = torch.tensor([weighed and not own for own in own_twin], device=source.device)
        alone = [one and two for one, two in zip(learns, own_twin, strict=True)]
        self._alone = torch.tensor(alone, device=source.device)
        self._compares = self.policy is not None and any(alone)
        self._by_batch = any(kind != "source" for kind in config.statistics)
        self.wary = self.policy is not None and self.policy.statistics and self._by_batch
        self._one_sided = OneSided(network) if self._watches_statistics() else None
        self.sides: tuple[int, ...] = (0,) * config.populations

    def _watches_statistics(self) -> bool:
        """Whether somebody goes by the batch whom no evidence corrects."""
        config = self._config
        weighed = config.aggregate.by_fineness and all(config.statistics[n] == "source" for n in config.anchors)
        return self.policy is not None and self.policy.statistics and self._by_batch and not weighed

    # ------------------------------------------------------------------ the source on the same images

    def source_answers(self, step: Step, state: PopulationState, x: Tensor, steps: int) -> Tensor | None:
        """(G·K, B', C) what the particles would say of the first images had they learnt nothing; None if not due."""
        images = x.shape[1] if step.engine.uses_batch_statistics else min(x.shape[1], _COMPARED_IMAGES)
        if not self._compares or steps % self._pause(images, x):
            return None
        unlearnt = replace(state, theta=self._source.expand_as(state.theta))
        return step.predict(unlearnt, x[:, :images])

    def compared(self, result: StepResult, source_answers: Tensor | None) -> StepResult:
        """The step's result, its guard told of the source's answers."""
        if source_answers is None or self.policy is None:
            return result
        own = result.logits[:, : source_answers.shape[1]]
        memory = compared(self.policy, result.state.guard, own, source_answers, self._alone)
        return replace(result, state=replace(result.state, guard=memory))

    def _pause(self, images: int, x: Tensor) -> int:
        """Steps between two looks at so many images of batches (G, B, ...)."""
        return -(-_SHARE * images // x.shape[1]) * (_ON_GPU if x.is_cuda else 1)

    # ------------------------------------------------------------------ batches of one class

    def resume(self, state: PopulationState) -> None:
        """Goes on from a state."""
        marks = state.guard.get("one_sided")
        each = self._config.particles
        self.sides = (0,) * self._config.populations if marks is None else tuple(marks[::each].tolist())

    def looked(self, x: Tensor, steps: int) -> tuple[int, ...]:
        """For each population of batches (G, B, ...) how many looks it stays with stored statistics."""
        images = min(IMAGES, x.shape[1] // 2)
        if self._one_sided is None or not self._one_sided.knows or images < IMAGES // 2:
            return self.sides
        due = steps < _EAGER_STEPS or any(self.sides) or steps % self._pause(images, x) == 0
        if not due:
            return self.sides
        with model_errors_as_input_errors(x[0]):
            found = [self._one_sided(batch) for batch in x]
        return tuple(_LOOKS_KEPT if now else max(0, left - 1) for now, left in zip(found, self.sides, strict=True))

    def marked(self, state: PopulationState, sides: Sequence[int]) -> PopulationState:
        """The state with what the looks found."""
        if tuple(sides) == self.sides or not state.guard:
            return state
        self.sides = tuple(sides)
        each = torch.tensor(sides, device=state.step.device).repeat_interleave(self._config.particles)
        return replace(state, guard={**state.guard, "one_sided": each})
