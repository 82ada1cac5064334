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

from polytta.errors import InputError
from polytta.lab.bench.cell import listed
from polytta.lab.bench.labels import distinct_names, shortened
from polytta.lab.bench.record import Record, canonical_json

CHANCE = 0.05
# What says that two cells are the same place of a table; everything else may be what is compared.
PLACE = ("model", "dataset", "corruption", "severity", "scenario", "variant", "seed")
# A run may have several cells at one place; then these have to agree too.
_FINER = (*PLACE, "batch_size", "images", "precision", "normalisation")
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
class AccuracyVerdict:
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
    verdicts: dict[str, AccuracyVerdict]
    only_a: int
    only_b: int


def compare(a: Sequence[Record], b: Sequence[Record]) -> Comparison:
    """Compares two records, or the records of two runs that stand at the same place of their tables."""
    if len(a) == 1 and len(b) == 1:
        pairs = [(a[0], b[0])]
        only_a = only_b = 0
    else:
        pairs = _partners(a, b)
        if not pairs:
            raise InputError(
                f"A, B: got no cell in common; allowed are runs of which some agree in {', '.join(PLACE)}."
            )
        only_a, only_b = len(a) - len(pairs), len(b) - len(pairs)
    rows: dict[str, list[tuple[Record, Record]]] = {}
    for pair in pairs:
        rows.setdefault(canonical_json([_rest(record) for record in pair]), []).append(pair)
    verdicts = {
        name: verdict(members) for name, members in zip(_names(list(rows.values())), rows.values(), strict=True)
    }
    return Comparison(_differences(pairs), verdicts, only_a, only_b)


def verdict(pairs: Sequence[tuple[Record, Record]]) -> AccuracyVerdict:
    """One pair, or the pairs of several seeds."""
    left, right = (float(np.mean([one.results.accuracy for one in side])) for side in zip(*pairs, strict=True))
    if len(pairs) > 1:
        values = np.array([(a.results.accuracy, b.results.accuracy) for a, b in pairs])
        gain = right - left
        paired = all(_share_a_stream(a, b) for a, b in pairs)
        spread = np.var(values[:, 1] - values[:, 0], ddof=1) if paired else np.var(values, axis=0, ddof=1).sum()
        margin = _T[min(len(pairs) - 1, len(_T)) - 1] * math.sqrt(float(spread) / len(pairs))
        how = f"paired over {len(pairs)} seeds" if paired else f"{len(pairs)} seeds, not paired: the streams differ"
        return AccuracyVerdict(left, right, gain, margin, abs(gain) <= margin, how)
    a, b = pairs[0]
    if _share_a_stream(a, b):
        return _over_one_stream(a, b)
    shares = [(record.results.accuracy / 100, record.results.images) for record in (a, b)]
    margin = 196 * math.sqrt(sum(share * (1 - share) / count for share, count in shares))
    gain = b.results.accuracy - a.results.accuracy
    return AccuracyVerdict(left, right, gain, margin, abs(gain) <= margin, "not paired: the streams differ")


def _over_one_stream(a: Record, b: Record) -> AccuracyVerdict:
    gained, lost = int((b.correct & ~a.correct).sum()), int((a.correct & ~b.correct).sum())
    images = a.results.images
    gain = 100 * (gained - lost) / images
    margin = 196 * math.sqrt(max(0.0, gained + lost - (gained - lost) ** 2 / images)) / images
    chance = mcnemar(gained, lost)
    how = f"paired over {images} images of one stream: {gained} gained, {lost} lost, by chance with p = {chance:.2g}"
    return AccuracyVerdict(a.results.accuracy, b.results.accuracy, gain, margin, chance > CHANCE, how)


def mcnemar(gained: int, lost: int) -> float:
    """Probability that a fair coin splits the images that changed at least as unevenly."""
    total, fewer = gained + lost, min(gained, lost)
    # Logarithms: the binomial coefficients of a whole test set do not fit a float.
    terms = [
        math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1) - total * math.log(2)
        for k in range(fewer + 1)
    ]
    return min(1.0, 2 * math.fsum(map(math.exp, terms)))


def comparison_text(comparison: Comparison) -> str:
    """What there is to say, one line each."""
    lines = []
    if not comparison.differences:
        lines.append("Every fact on record is the same.")
    else:
        lines.append("Facts that differ:")
        lines += [f"  {d.fact}: {shortened(d.a)} | {shortened(d.b)}" + _times(d.pairs) for d in comparison.differences]
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
    yield from _flat("cell", record.cell.flat())
    yield from _flat("pins", listed(record.pins))
    yield from _flat("environment", listed(record.environment))


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(f"{name}.{key}", item)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value):
            yield from _flat(f"{name}.{number}", item)
    else:
        yield name, value


def _share_a_stream(a: Record, b: Record) -> bool:
    return bool(a.pins["stream"]["sha256"] == b.pins["stream"]["sha256"])


def _partners(a: Sequence[Record], b: Sequence[Record]) -> list[tuple[Record, Record]]:
    """Pairs of records of the same cell, then of the same place; none where more than one could be meant."""
    pairs: list[tuple[Record, Record]] = []
    left, right = list(a), list(b)
    for names in (None, _FINER, PLACE):
        ours, theirs = _by_place(left, names), _by_place(right, names)
        found = [
            (own[0], theirs[place][0])
            for place, own in ours.items()
            if len(own) == 1 and len(theirs.get(place, ())) == 1
        ]
        pairs += found
        taken = {id(record) for pair in found for record in pair}
        left, right = ([record for record in side if id(record) not in taken] for side in (left, right))
    return pairs


def _by_place(records: Sequence[Record], names: Sequence[str] | None) -> dict[str, list[Record]]:
    """Records by what they say under these names; None means all of the cell."""
    places: dict[str, list[Record]] = {}
    for record in records:
        cell = record.cell.flat()
        place = cell if names is None else {name: cell[name] for name in names}
        places.setdefault(canonical_json(place), []).append(record)
    return places


def _rest(record: Record) -> dict[str, Any]:
    """The cell, the seed aside."""
    return {name: value for name, value in record.cell.flat().items() if name != "seed"}


def _names(rows: Sequence[Sequence[tuple[Record, Record]]]) -> list[str]:
    """What each row is about, the seed aside; where namesakes differ in settings, these too."""
    first = [members[0] for members in rows]
    return distinct_names([_words(*pair) for pair in first], [_rest(a) for a, _ in first])


def _words(a: Record, b: Record) -> str:
    """Of both sides where they call it differently."""
    words = [record.cell.words.rpartition(" seed ")[0] for record in (a, b)]
    return words[0] if words[0] == words[1] else " | ".join(words)


def _times(pairs: int) -> str:
    return "" if pairs == 1 else f"  ({pairs} cells)"
