"""A mean over seeds, and how tables write it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from polytta.lab.pages.tables import TableCell

MISSING = TableCell("-")


@dataclass(frozen=True)
class Stat:
    """A mean over seeds and, with two or more, its sample standard deviation."""

    mean: float
    std: float | None
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Stat":
        """Of at least one value."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else None, len(values))


def stat_cell(stat: Stat | None, digits: int = 1, *, best: bool = False, below: bool = False) -> TableCell:
    """Mean and standard deviation; a dash where there is nothing."""
    if stat is None:
        return MISSING
    spread = "" if stat.std is None else f"{stat.std:.{digits}f}"
    return TableCell(f"{stat.mean:.{digits}f}", spread=spread, best=best, below=below)
