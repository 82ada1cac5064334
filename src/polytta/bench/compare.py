"""Two results side by side: which facts differ, and whether the difference in accuracy is more than noise.

Over one stream the two are paired image by image: only the images that one had right and the other wrong say anything,
and by chance each of the two would have half of them (McNemar's test, exact). Over several seeds the differences of
the seeds are what varies (a paired t-test). A difference counts as noise when it would come about by chance in more
than one of twenty cases.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polytta.bench.record import Record
from polytta.errors import InputError

CHANCE = 0.05
# What says that two cells are the same place of a table; everything else may be what is compared.
PLACE = ("model", "dataset", "corruption", "severity", "scenario", "variant", "seed")
# Known to differ, or told by another fact.
_SKIPPED = ("cell.seed", "pins.settings.seed", "pins.stream.sha256", "pins.stream.spec.seed")
# 97.5 % points of Student's t for 1 to 30 degrees of freedom (any table of it); beyond, the normal distribution's.
_T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]
_T += [2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042, 1.96]


@dataclass(frozen=True)
class Difference:
    """A fact that is not the same on both sides, in ``pairs`` of the pairs compared."""

    fact: str
    a: Any
    b: Any
    pairs: int


@dataclass(frozen=True)
class Verdict:
    """How far apart two accuracies are.

    Attributes:
        a: accuracy in percent, mean over seeds.
        b: likewise.
        gain: b - a in points.
        margin: half the width of the 95 % interval of the gain.
        noise: whether the gain may well be chance.
        how: what was compared, in words.
    """

    a: float
    b: float
    gain: float
    margin: float
    noise: bool
    how: str


@dataclass(frozen=True)
class Comparison:
    """Everything ``compare`` found out."""

    differences: list[Difference]
    verdicts: dict[str, Verdict]
    only_a: int
    only_b: int


def compare(a: Sequence[Record], b: Sequence[Record]) -> Comparison:
    """Compares two records, or the records of two runs that stand at the same place of their tables."""
    if len(a) == 1 and len(b) == 1:
        pairs = [(a[0], b[0])]
        only_a = only_b = 0
    else:
        left, right = ({_place(record): record for record in side} for side in (a, b))
        shared = [place for place in left if place in right]
        if not shared:
            raise InputError(f"A and B have no cell in common: none agrees in {', '.join(PLACE)}.")
        pairs = [(left[place], right[place]) for place in shared]
        only_a, only_b = len(left) - len(shared), len(right) - len(shared)
    rows: dict[str, list[tuple[Record, Record]]] = {}
    for pair in pairs:
        rows.setdefault(_row(*pair), []).append(pair)
    return Comparison(_differences(pairs), {row: verdict(members) for row, members in rows.items()}, only_a, only_b)


def verdict(pairs: Sequence[tuple[Record, Record]]) -> Verdict:
    """One pair, or the pairs of several seeds."""
    left, right = (float(np.mean([one.results.accuracy for one in side])) for side in zip(*pairs, strict=True))
    if len(pairs) > 1:
        gains = [b.results.accuracy - a.results.accuracy for a, b in pairs]
        margin = _T[min(len(gains) - 1, len(_T)) - 1] * float(np.std(gains, ddof=1)) / math.sqrt(len(gains))
        gain = float(np.mean(gains))
        return Verdict(left, right, gain, margin, abs(gain) <= margin, f"paired over {len(pairs)} seeds")
    a, b = pairs[0]
    if a.pins["stream"]["sha256"] == b.pins["stream"]["sha256"]:
        return _over_one_stream(a, b)
    shares = [(record.results.accuracy / 100, record.results.images) for record in (a, b)]
    margin = 196 * math.sqrt(sum(share * (1 - share) / count for share, count in shares))
    gain = b.results.accuracy - a.results.accuracy
    return Verdict(left, right, gain, margin, abs(gain) <= margin, "not paired: the streams differ")


def _over_one_stream(a: Record, b: Record) -> Verdict:
    gained, lost = int((b.correct & ~a.correct).sum()), int((a.correct & ~b.correct).sum())
    images = a.results.images
    gain = 100 * (gained - lost) / images
    margin = 196 * math.sqrt(max(0.0, gained + lost - (gained - lost) ** 2 / images)) / images
    chance = mcnemar(gained, lost)
    how = f"paired over {images} images of one stream: {gained} gained, {lost} lost, by chance with p = {chance:.2g}"
    return Verdict(a.results.accuracy, b.results.accuracy, gain, margin, chance > CHANCE, how)


def mcnemar(gained: int, lost: int) -> float:
    """Probability that a fair coin splits the images that changed at least as unevenly."""
    total, fewer = gained + lost, min(gained, lost)
    # Logarithms: the binomial coefficients of a whole test set do not fit a float.
    terms = [
        math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1) - total * math.log(2)
        for k in range(fewer + 1)
    ]
    return min(1.0, 2 * math.fsum(map(math.exp, terms)))


def as_text(comparison: Comparison) -> str:
    """What there is to say, one line each."""
    lines = []
    if not comparison.differences:
        lines.append("Every fact on record is the same.")
    else:
        lines.append("Facts that differ:")
        lines += [f"  {d.fact}: {_shown(d.a)} | {_shown(d.b)}" + _times(d.pairs) for d in comparison.differences]
    lines.append("Accuracy, A | B:")
    for row, found in comparison.verdicts.items():
        judged = "within noise" if found.noise else "more than noise"
        lines.append(
            f"  {row}: {found.a:.2f} % | {found.b:.2f} %, {found.gain:+.2f} ± {found.margin:.2f} points, "
            f"{judged} ({found.how})"
        )
    if comparison.only_a or comparison.only_b:
        lines.append(f"Without a partner: {comparison.only_a} cells of A, {comparison.only_b} of B.")
    return "\n".join(lines)


def _differences(pairs: Sequence[tuple[Record, Record]]) -> list[Difference]:
    found: dict[tuple[str, str, str], Difference] = {}
    for a, b in pairs:
        left, right = dict(_facts(a)), dict(_facts(b))
        for fact in dict.fromkeys((*left, *right)):
            values = left.get(fact), right.get(fact)
            if values[0] == values[1] or (fact in _SKIPPED and a.cell.seed != b.cell.seed):
                continue
            key = (fact, repr(values[0]), repr(values[1]))
            before = found[key].pairs if key in found else 0
            found[key] = Difference(fact, *values, before + 1)
    return list(found.values())


def _facts(record: Record) -> Iterator[tuple[str, Any]]:
    plain = record.to_dict()
    for part in ("cell", "pins", "environment"):
        yield from _flat(part, plain[part])


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(f"{name}.{key}", item)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value):
            yield from _flat(f"{name}.{number}", item)
    else:
        yield name, value


def _place(record: Record) -> tuple[Any, ...]:
    return tuple(getattr(record.cell, name) for name in PLACE)


def _row(a: Record, b: Record) -> str:
    """What the pair is about, the seed aside; where the two sides call it differently, both."""
    words = [record.cell.words.rpartition(" seed ")[0] for record in (a, b)]
    return words[0] if words[0] == words[1] else " | ".join(words)


def _shown(value: Any, most: int = 80) -> str:
    text = str(value)
    return text if len(text) <= most else f"{text[:most]}..."


def _times(pairs: int) -> str:
    return "" if pairs == 1 else f"  ({pairs} cells)"
