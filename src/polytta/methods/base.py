"""The role of a base method: which samples each particle learns from, how strongly, and when it starts over.

A method is a frozen dataclass. Most methods only write ``select``; a method with its own update rule (SAR's two
passes) writes ``update``. Everything is batched over particles: logits are (K, B, C), masks and weights (K, B), and no
operation may mix rows of different particles. A method never learns which diversifier, optimizer or engine it meets.
"""

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from polytta.roles.noise import Noise

State = Mapping[str, Tensor]


@dataclass(frozen=True)
class Pass:
    """One forward pass of the whole population.

    Attributes:
        theta: (K, P) parameters it was made with; gradients are taken with respect to these.
        x: (K, B, ...) images.
        logits: (K, B, C).
        where: the (particle, sample) pairs that were computed; None means all.
        view: which view of the batch this is.
    """

    theta: Tensor
    x: Tensor
    logits: Tensor
    where: Tensor | None = None
    view: int = 0


@dataclass(frozen=True)
class Selection:
    """The samples each particle learns from.

    Attributes:
        mask: (K, B) booleans.
        weight: (K, B) factors of the sample losses, without gradient; None means 1.
        counts: (filters, K), how many samples were left after each filter.
    """

    mask: Tensor
    weight: Tensor | None
    counts: Tensor

    @classmethod
    def of(cls, *filters: Tensor, weight: Tensor | None = None) -> "Selection":
        """Samples left by successive filters, each a subset of the one before."""
        return cls(filters[-1], weight, torch.stack([mask.sum(dim=1) for mask in filters]))


@dataclass(frozen=True)
class Proposal:
    """What a method wants done to the population.

    Attributes:
        logits: (K, B, C) of the first pass over the batch: the prediction before the update.
        selections: one per view.
        direction: (K, P) gradient to descend; None when the method never moves a parameter.
        moves: (K,) booleans, the particles whose optimizer takes a step.
        resets: (K,) booleans, the particles that return to source after the step.
        state: the method's state after this batch.
        keep_momentum: whether a reset particle's optimizer state survives.
        losses: (K,) loss values for the report.
    """

    logits: Tensor
    selections: Sequence[Selection] = ()
    direction: Tensor | None = None
    moves: Tensor | None = None
    resets: Tensor | None = None
    state: State = field(default_factory=dict)
    keep_momentum: bool = False
    losses: Tensor | None = None


class Beginning(Protocol):
    """What a method knows before the first batch."""

    particles: int
    num_classes: int
    theta: Tensor
    source: Tensor


class Context(Beginning, Protocol):
    """What a method may use during one step."""

    log_classes: float

    def passes(self) -> list[Pass]:
        """One differentiable pass per view of the batch, at the current particles."""

    def prediction(self, passes: Sequence[Pass]) -> Tensor:
        """(K, B, C) logits that the answer is made from, given one pass per view."""

    def forward(self, near: Pass, *, x: Tensor | None = None, where: Tensor | None = None, theta: Tensor | None = None,
                statistics_of_all: bool = False, grad: bool = False) -> Pass:  # fmt: skip
        """Another pass like ``near`` with other images, other parameters, or for some pairs only."""

    def descend(self, passes: Sequence[Pass], selections: Sequence[Selection]) -> tuple[Tensor, Tensor]:
        """Direction (K, P) of the diversified objective over the selected samples, and the particles' losses (K,)."""

    def noise(self, view: int) -> Noise:
        """The particles' random numbers for this step and view."""

    def flatten(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Tensors named like the model's parameters as one vector (P,)."""


class Method(ABC):
    """Base of all methods. Subclasses are frozen dataclasses with a ``name``."""

    name: ClassVar[str]
    filters: ClassVar[tuple[str, ...]] = ()
    """Names of the successive filters, for reports."""
    adapts: ClassVar[bool] = True
    """False for methods that only predict."""
    statistics: ClassVar[str] = "batch"
    """What BatchNorm layers use unless the user says otherwise."""
    single_image_lr_factor: ClassVar[float] = 1.0
    """The public code's extra factor on the learning rate at batch size 1."""

    def validate(self) -> None:
        """Raises ConfigError when a field has a value that is not allowed."""

    def init(self, context: Beginning) -> State:
        """State before the first batch: named tensors whose first dimension is K."""
        return {}

    def select(self, context: Context, made: Pass, state: State) -> tuple[Selection, State]:
        """Which samples each particle learns from, given its predictions."""
        raise NotImplementedError(f"{type(self).__name__} writes neither select nor update")

    def sample_losses(self, logits: Tensor) -> Tensor:
        """(K, B) losses to descend; entropy unless a method says otherwise."""
        return entropy(logits)

    def penalty(self, context: Context, theta: Tensor) -> Tensor | None:
        """(K,) extra loss on the parameters themselves."""
        return None

    def update(self, context: Context, state: State) -> Proposal:
        """One step: predict, select, descend."""
        passes = context.passes()
        selections, state = self.select_all(context, passes, state)
        direction, losses = context.descend(passes, selections)
        moves = any_selected(selections)
        return Proposal(context.prediction(passes), selections, direction, moves, state=state, losses=losses)

    def select_all(self, context: Context, passes: Sequence[Pass], state: State) -> tuple[list[Selection], State]:
        """``select`` for every view, threading the state through."""
        selections = []
        for made in passes:
            selection, state = self.select(context, made, state)
            selections.append(selection)
        return selections, state


def entropy(logits: Tensor) -> Tensor:
    """Shannon entropy in nats of softmax(logits) over the last dimension."""
    log_probs = logits.log_softmax(dim=-1)
    return -(log_probs.exp() * log_probs).sum(dim=-1)


def any_selected(selections: Sequence[Selection]) -> Tensor:
    """(K,) whether a particle kept a sample in any view."""
    return torch.stack([selection.mask.any(dim=1) for selection in selections]).any(dim=0)


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the masked entries of the last dimension, 0 where there are none."""
    kept = torch.where(mask, values, torch.zeros_like(values))
    return kept.sum(dim=-1) / mask.sum(dim=-1).clamp(min=1)
