"""What a method hands to the step: the losses to descend, on which samples, and what follows from them.

    minimise  Σ_t  1/|S_t| · Σ_{b∈S_t} w_tb · ℓ_t(passes of t)_b  +  penalty

A term is a loss per sample, as a function of the passes it looks at, over a selection. The step never asks the method
again: whoever diversifies, differentiates or repeats a pass with other images calls the function in the term.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from polytta.roles.passes import Pass, Selection, any_selected

State = Mapping[str, Tensor]
"""A method's named tensors, one row per particle."""

SampleLosses = Callable[[Sequence[Pass]], Tensor]
"""Passes to (K, B) losses; no row may depend on another particle's."""


@dataclass(frozen=True)
class Term:
    """One loss per particle and sample.

    Attributes:
        passes: what the loss is a function of: one view, or several that it compares; all passes of a lesson are of
            the same parameters.
        selection: the samples that count.
        losses: called with ``passes``, or with the same passes over other images.
    """

    passes: Sequence[Pass]
    selection: Selection
    losses: SampleLosses


def of_one_pass(losses: Callable[[Tensor], Tensor]) -> SampleLosses:
    """Losses of a term over one pass, given as a function of its logits."""

    def of_passes(passes: Sequence[Pass]) -> Tensor:
        return losses(passes[0].logits)

    return of_passes


@dataclass(frozen=True)
class Lesson:
    """What a method wants learnt from a batch.

    Attributes:
        terms: what to descend; none means that nothing is learnt.
        state: the method's state after this batch.
        penalty: (K,) loss on the parameters themselves, or None.
        moves: (K,) booleans, the particles whose optimizer takes a step; None means those that kept a sample.
        resets: (K,) booleans, the particles that return to source after the step; None means none.
        keep_momentum: whether a reset particle's optimizer state survives.
        look_again: given the direction (K, P) of this lesson, another to learn in its place (SAR's second pass).
        after_step: given the parameters (K, P) after the step, those to keep and the state (teachers, averages).
        then: given the parameters (K, P) after all this, what to learn next from the same batch; None ends the lesson.
        forgets: whether the optimizers start anew before this step.
    """

    terms: Sequence[Term] = ()
    state: State = field(default_factory=dict)
    penalty: Tensor | None = None
    moves: Tensor | None = None
    resets: Tensor | None = None
    keep_momentum: bool = False
    look_again: Callable[[Tensor], "Lesson"] | None = None
    after_step: Callable[[Tensor], tuple[Tensor, State]] | None = None
    then: Callable[[Tensor], "Lesson"] | None = None
    forgets: bool = False

    @property
    def learners(self) -> Tensor:
        """(K,) the particles that kept a sample."""
        return any_selected([term.selection for term in self.terms])
