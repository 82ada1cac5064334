"""The role of an aggregate: one prediction from K."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor


class Aggregate(ABC):
    """Base of all aggregates. Subclasses are frozen dataclasses with a ``name``."""

    name: ClassVar[str]

    def validate(self) -> None:
        """Raises ConfigError when a field has a value that is not allowed."""

    def facts(self) -> dict[str, float | str]:
        """What pins its answers besides its fields, for records."""
        return {}

    @abstractmethod
    def combine(self, logits: Tensor, evidence: Mapping[str, Tensor]) -> Tensor:
        """(..., B, C) log-probabilities from (..., K, B, C) logits.

        ``evidence`` is what the answers before this batch say about the particles (``polytta.aggregate.evidence``),
        empty before the first.
        """
