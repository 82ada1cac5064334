r"""The source model as it is: p(y|x) = softmax f(x; θ⁰). The yardstick every adaptation is measured against."""

from dataclasses import dataclass
from typing import ClassVar

from polytta.methods.base import Context, Method, Proposal, State


@dataclass(frozen=True)
class Source(Method):
    """No adaptation; BatchNorm uses its stored statistics."""

    name: ClassVar[str] = "source"
    adapts: ClassVar[bool] = False
    statistics: ClassVar[str] = "source"

    def update(self, context: Context, state: State) -> Proposal:
        """Predicts only."""
        return Proposal(context.prediction(context.passes()))
