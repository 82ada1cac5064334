"""Who is trusted how much, by what makes the hypotheses different: ``farther x pace 0.1: weight 0.31``."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """One particle of a population.

    Attributes:
        number: its row.
        axes: {what hypotheses differ in: what it has}, in words; empty where all are alike.
        weight: its share of the answers on images like those of late.
        learns: whether it learns at present: not at a rate of 0, nor after a long time without weight.
        restarts: how often it has collapsed and started over.
    """

    number: int
    axes: dict[str, str]
    weight: float
    learns: bool
    restarts: int

    def __str__(self) -> str:
        what = " x ".join(self.axes.values()) or f"particle {self.number}"
        return f"{what}: weight {self.weight:.2f}"


def by_axis(hypotheses: Sequence[Hypothesis]) -> dict[str, dict[str, float]]:
    """{axis: {value: weight of all hypotheses that have it}}, the heaviest first."""
    found: dict[str, dict[str, float]] = {}
    for one in hypotheses:
        for axis, value in one.axes.items():
            sums = found.setdefault(axis, {})
            sums[value] = sums.get(value, 0.0) + one.weight
    return {axis: dict(sorted(sums.items(), key=lambda item: -item[1])) for axis, sums in found.items()}
