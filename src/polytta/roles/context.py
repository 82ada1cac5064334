"""What a method may use. The engine room implements it; methods never learn how."""

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor, nn

from polytta.roles.noise import StepNoise
from polytta.roles.passes import Pass


class Start(Protocol):
    """What a method knows before the first batch."""

    @property
    def particles(self) -> int:
        """Rows of ``theta``, those of all populations."""

    @property
    def num_classes(self) -> int:
        """C."""

    @property
    def theta(self) -> Tensor:
        """(K, P) the particles."""

    @property
    def source(self) -> Tensor:
        """(P,) the source model's parameters."""

    @property
    def network(self) -> nn.Module:
        """The frozen source network, for what it holds besides its layers (text features, say)."""


class Context(Start, Protocol):
    """What a method may use during one step."""

    @property
    def log_classes(self) -> float:
        """ln C."""

    @property
    def batch_size(self) -> int:
        """B."""

    @property
    def uses_batch_statistics(self) -> bool:
        """Whether what a pass says of an image depends on the others in it."""

    def forward(self, near: Pass, *, x: Tensor | None = None, where: Tensor | None = None, theta: Tensor | None = None,
                statistics_of_all: bool = False, grad: bool = False) -> Pass:  # fmt: skip
        """Another pass like ``near`` with other images, other parameters, or for some (particle, sample) pairs only.

        Images are as particles see them, after their lenses.
        With ``grad`` it can be learnt from. A pass of some pairs has batch statistics of just these, unless
        ``statistics_of_all``.
        """

    @property
    def noise(self) -> StepNoise:
        """``noise(view)`` gives the particles' random numbers for this step and view."""

    def flatten(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Tensors named like the model's parameters as one vector (P,)."""
