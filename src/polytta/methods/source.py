r"""The source model as it is: p(y|x) = softmax f(x; θ⁰). The yardstick every adaptation is measured against."""

from dataclasses import dataclass
from typing import ClassVar

from polytta.methods.base import Method


@dataclass(frozen=True)
class Source(Method):
    """No adaptation; BatchNorm uses its stored statistics."""

    name: ClassVar[str] = "source"
    adapts: ClassVar[bool] = False
    statistics: ClassVar[str] = "source"
