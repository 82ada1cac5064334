"""The role of a base method: what each particle learns from a batch, how strongly, and when it starts over.

A method is a frozen dataclass. Most methods only write ``select``; one with targets of its own (a teacher, other views,
text), or one that looks twice (SAR's perturbed point), writes ``learn``. Everything is batched
over particles: logits are (K, B, C), masks and weights (K, B), and no operation may mix rows of different particles. A
method never learns which diversifier, optimizer or engine it meets: it hands over a lesson, and the step does the rest.
"""

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from polytta.errors import ConfigError
from polytta.roles import Context, Lesson, Pass, Selection, Sight, Start, State, Term, entropy, of_one_pass


class Method(ABC):
    """Base of all methods. Subclasses are frozen dataclasses with a ``name``."""

    name: ClassVar[str]
    filters: ClassVar[tuple[str, ...]] = ()
    """Names of the successive filters, for reports."""
    adapts: ClassVar[bool] = True
    """False for methods that only predict."""
    descends: ClassVar[bool] = True
    """False for methods that learn without moving parameters of the network: they remember, or learn something else."""
    needs_text: ClassVar[bool] = False
    """Whether it compares images with text, and so needs a network that ``polytta.clip`` made."""
    statistics: ClassVar[str] = "batch"
    """What BatchNorm layers use unless the user says otherwise."""
    single_image_lr_factor: ClassVar[float] = 1.0
    """The public code's extra factor on the learning rate at batch size 1."""

    @property
    def episodic(self) -> bool:
        """Whether every batch starts from the source model again and is answered after it was learnt from."""
        return False

    def validate(self) -> None:
        """Raises ConfigError when a field has a value that is not allowed."""

    def init(self, start: Start) -> State:
        """State before the first batch: named tensors whose first dimension is K."""
        return {}

    def answer(self, logits: Tensor) -> Tensor:
        """Logits (K, B, C) to answer from, given those of the batch; as they are unless a method corrects them."""
        return logits

    def look(self, context: Context, passes: Sequence[Pass], logits: Tensor, state: State) -> Sight:
        """What to learn and to answer from, given a pass per view and the logits (K, B, C) that follow from them.

        Predictions ask this too, so it must not depend on what is learnt from the batch.
        """
        return Sight(passes, logits, self.answer(logits))

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        """Which samples each particle learns from, given its predictions."""
        raise NotImplementedError(f"{type(self).__name__} writes neither select nor learn")

    sample_losses = staticmethod(entropy)
    """From logits (K, B, C) to the losses (K, B) to descend; entropy unless a method writes its own."""

    def penalty(self, context: Context, theta: Tensor) -> Tensor | None:
        """(K,) extra loss on the parameters themselves."""
        return None

    def learn(self, context: Context, passes: Sequence[Pass], state: State) -> Lesson:
        """What to learn from one pass per view of the batch: by default the selected samples of each view."""
        penalty = self.penalty(context, passes[0].theta)
        terms = []
        for forward_pass in passes:
            selection, state = self.select(context, forward_pass, state)
            terms.append(Term((forward_pass,), selection, of_one_pass(self.sample_losses)))
        return Lesson(terms, state, penalty)


def require_methods_of_today(method: Method) -> None:
    """Refuses a method written for an interface that is gone, whose code would never be called."""
    if hasattr(method, "update"):
        raise ConfigError(
            f"method: got {type(method).__name__} with update(context, state), which is not called any more; "
            "allowed are select and learn (see CONTRIBUTING.md)."
        )
