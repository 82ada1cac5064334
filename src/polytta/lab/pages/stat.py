"""A mean over seeds, and how tables write it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from polytta.lab.intervals import spread
from polytta.lab.pages.tables import TableCell

MISSING = TableCell("-")


@dataclass(frozen=True)
class Stat:
    """A mean over seeds.

    Attributes:
        mean: of the seeds.
        std: their sample standard deviation, with two or more.
        seeds: how many.
        margin: half the width of its 95 % interval, where that is known.
    """

    mean: float
    std: float | None
    seeds: int
    margin: float | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Stat":
        """Of at least one value."""
        return cls(fmean(values), spread(values) if len(values) > 1 else None, len(values))


def interval_cell(stat: Stat | None, *, best: bool = False) -> TableCell:
    """Mean and half the width of its 95 % interval."""
    if stat is None:
        return MISSING
    margin = "" if stat.margin is None else f"{stat.margin:.1f}"
    return TableCell(f"{stat.mean:.1f}", spread=margin, best=best)


def gain_cell(gain: Stat, where: str = "") -> TableCell:
    """A difference with its sign, and half the width of its 95 % interval; red where it is a loss."""
    shown = round(gain.mean, 1) + 0.0  # no minus before a zero
    margin = "" if gain.margin is None else f"{gain.margin:.1f}"
    return TableCell(f"{shown:+.1f}{where}", spread=margin, below=shown < 0)


def stat_cell(stat: Stat | None, digits: int = 1, *, best: bool = False, below: bool = False) -> TableCell:
    """Mean and standard deviation; a dash where there is nothing."""
    if stat is None:
        return MISSING
    std = "" if stat.std is None else f"{stat.std:.{digits}f}"
    return TableCell(f"{stat.mean:.{digits}f}", spread=std, best=best, below=below)
