"""Two rows of a benchmark against each other, paired cell by cell.

What is repeated are cells: with three or more, the differences of the cells are what varies (a paired t-test); with
fewer, the images that one row had right and the other wrong (McNemar's test, exact).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polytta.errors import InputError
from polytta.lab.bench.comparison import CHANCE, mcnemar
from polytta.lab.bench.record import Record, canonical_json
from polytta.lab.intervals import FEWEST, chance_of_mean, margin_of_mean

_PLACE = ("model", "dataset", "corruption", "severity", "scenario", "batch_size", "images", "normalisation", "seed")
Pair = tuple[Record, Record]


@dataclass(frozen=True)
class RowsCompared:
    """How two rows compare over some cells.

    Attributes:
        name: which cells.
        a: mean accuracy of the first row in percent.
        b: of the second.
        gain: b - a in points.
        margin: half the width of the 95 % interval of the gain.
        chance: p, the probability of as large a gain where there is none.
        cells: how many pairs; and of these, where the second row was better, and where worse.
        gained: images the second row had right and the first wrong.
        lost: the other way round.
    """

    name: str
    a: float
    b: float
    gain: float
    margin: float
    chance: float
    cells: int
    better: int
    worse: int
    gained: int
    lost: int


def compare_rows(ours: Sequence[Record], theirs: Sequence[Record], rows: tuple[str, str]) -> list[RowsCompared]:
    """All cells together first, then each model and scenario where there are several.

    Args:
        ours: records that have the first row.
        theirs: records that have the second; may be the same.
        rows: their labels.
    """
    sides = [_of_row(records, row) for records, row in zip((ours, theirs), rows, strict=True)]
    pairs = [(a, sides[1][place]) for place, a in sides[0].items() if place in sides[1]]
    pairs = [(a, b) for a, b in pairs if a.pins["stream"]["sha256"] == b.pins["stream"]["sha256"]]
    if not pairs:
        raise InputError(
            f"--rows: got {' and '.join(rows)} without a stream in common; allowed are rows that share some."
        )
    groups: dict[str, list[Pair]] = {}
    for a, b in pairs:
        groups.setdefault(f"{a.cell.model} on {a.cell.dataset}, {a.cell.scenario}", []).append((a, b))
    parts = [compared(name, members) for name, members in groups.items()]
    return parts if len(parts) == 1 else [compared("all", pairs), *parts]


def compared(name: str, pairs: Sequence[Pair]) -> RowsCompared:
    """Two rows over some pairs of cells, each pair over one stream."""
    left, right = (float(np.mean([one.results.accuracy for one in side])) for side in zip(*pairs, strict=True))
    gains = [b.results.accuracy - a.results.accuracy for a, b in pairs]
    gained = sum(int((b.correct & ~a.correct).sum()) for a, b in pairs)
    lost = sum(int((a.correct & ~b.correct).sum()) for a, b in pairs)
    if len(pairs) >= FEWEST:
        margin, chance = margin_of_mean(gains), chance_of_mean(gains)
    else:
        variances = [_image_variance(a, b) for a, b in pairs]
        margin, chance = 196 * math.sqrt(sum(variances)) / len(pairs), mcnemar(gained, lost)
    better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    return RowsCompared(name, left, right, right - left, margin, chance, len(pairs), better, worse, gained, lost)


def rows_text(rows: tuple[str, str], found: Sequence[RowsCompared]) -> str:
    """One line each, and how it was found out."""
    lines = [f"Accuracy, {rows[0]} | {rows[1]}:"]
    for one in found:
        judged = "within noise" if one.chance > CHANCE else "more than noise"
        unit = f"{one.cells} cells" if one.cells >= FEWEST else f"the images of {one.cells} cell{'s' * (one.cells > 1)}"
        lines.append(
            f"  {one.name}: {one.a:.2f} % | {one.b:.2f} %, {one.gain:+.2f} ± {one.margin:.2f} points, "
            f"p = {one.chance:.2g}, {judged} (paired over {unit}; {rows[1]} better in {one.better}, worse in "
            f"{one.worse}; {one.gained} images gained, {one.lost} lost)"
        )
    return "\n".join(lines)


def _of_row(records: Sequence[Record], row: str) -> dict[str, Record]:
    found: dict[str, Record] = {}
    for record in records:
        if record.cell.variant != row:
            continue
        cell = record.cell.to_dict()
        place = canonical_json({name: cell[name] for name in _PLACE})
        if place in found:
            raise InputError(
                f"--rows: got {row!r} twice at {record.cell.words}, with other settings or weights; allowed is a "
                "folder with one of them."
            )
        found[place] = record
    if not found:
        known = ", ".join(dict.fromkeys(record.cell.variant for record in records))
        raise InputError(f"--rows: got {row!r}; allowed are {known}.")
    return found


def _image_variance(a: Record, b: Record) -> float:
    """Of the mean difference over the images of one stream, in shares."""
    difference = b.correct.astype(np.float64) - a.correct
    return float(difference.var() / len(difference))
