"""The little that a method knows before the first batch."""

from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True)
class StreamStart:
    """Implements ``polytta.roles.Start``."""

    particles: int
    num_classes: int
    theta: Tensor
    source: Tensor
    network: nn.Module
