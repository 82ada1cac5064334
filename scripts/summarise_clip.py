"""Tables of docs/clip.md: every CLIP row of a benchmark beside zero-shot, with what it costs.

    polytta bench --config benchmarks/grids/clip_batch128.toml ... --out out/clip    (pieces: see that file)
    python scripts/time_clip.py --out out/clip_times.csv
    python scripts/summarise_clip.py out/clip/table.csv --times out/clip_times.csv --into docs/clip.md

Prints the tables, and with --into puts them between the marks in that file. Gains are over zero-shot on the same
streams. Their intervals are 95 % over corruptions: Student's t of the corruptions' gains, each a mean over its seeds.
Costly rows may have fewer images, seeds or corruptions than others: a row is held against another on the streams that
both have, of the length at which they have most corruptions, the longer of two such, and the table says which. "Ahead
in" counts corruptions. Passes are images through the image encoder for each image answered, over all particles, views
and steps.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from polytta.errors import InputError
from polytta.lab.intervals import FEWEST, margin_of_mean

BEGIN, END = "<!-- made by scripts/summarise_clip.py: begin -->", "<!-- made by scripts/summarise_clip.py: end -->"
ZERO_SHOT = "source"
NAMES = {
    "source": "zero-shot",
    "tent": "Tent, ten steps on every batch",
    "tent_online": "Tent, online",
    "sar": "SAR, online",
    "tpt": "TPT",
    "tda": "TDA",
    "clipartt": "CLIPArTT",
    "watt_p": "WATT-P",
    "watt_s": "WATT-S",
    "watt_s_aug": "WATT-S+Aug",
    "watt_s_aug_kl": "WATT-S+Aug+Reg (KL)",
    "watt_s_aug_svgd": "WATT-S+Aug+Reg (SVGD)",
    "watt_s_aug_grad": "WATT-S+Aug+Reg (Grad)",
    "watt_lenses": "WATT-S, one round, five lenses",
    "watt_sight": "WATT-S, one round, the default's lenses",
    "prompts_own": "a template each, by evidence",
    "looking": "default, never learning",
    "default": "**default**",
}
OURS = ("default", "looking", "prompts_own", "watt_lenses", "watt_sight")
REGULARISED = ("watt_s_aug_kl", "watt_s_aug_svgd", "watt_s_aug_grad")
PAIRS = (
    ("watt_s", "watt_p"),
    ("watt_s_aug", "watt_s"),
    *((row, over) for over in ("watt_s", "watt_s_aug") for row in REGULARISED),
    ("watt_lenses", "watt_s"),
    ("watt_sight", "watt_s"),
    ("watt_sight", "default"),
)
"""Rows that are held against each other: (row, over which)."""


@dataclass(frozen=True)
class Streams:
    """Where lines can be held against each other."""

    model: str
    dataset: str
    severity: str
    batch: int
    precision: str


@dataclass(frozen=True)
class Score:
    """What a row got on one stream."""

    accuracy: float
    forward: float
    backward: float


Run = Mapping[tuple[str, str, int, int], Score]
"""{(row, corruption, seed, images): score}."""
Times = Mapping[tuple[str, int], Mapping[str, str]]
"""{(row, batch): line of the CSV}."""


def runs_of(tables: Iterable[Path]) -> dict[Streams, Run]:
    """What tables of `polytta bench` hold."""
    found: dict[Streams, dict[tuple[str, str, int, int], Score]] = {}
    for table in tables:
        with table.open(encoding="utf-8", newline="") as stream:
            for line in csv.DictReader(stream):
                images = int(line["images"])
                place = (line["variant"], line["corruption"], int(line["seed"]), images)
                own = Streams(
                    line["model"], line["dataset"], line["severity"], int(line["batch_size"]), line["precision"]
                )
                forward, backward = (int(line[f"{way}_samples"]) / images for way in ("forward", "backward"))
                found.setdefault(own, {})[place] = Score(float(line["accuracy"]), forward, backward)
    return found


def times_of(file: Path | None) -> Times:
    if file is None:
        return {}
    with file.open(encoding="utf-8", newline="") as stream:
        return {(line["row"], int(line["batch"])): line for line in csv.DictReader(stream)}


def rows_of(run: Run) -> list[str]:
    """Rows in the order of the names, then the others."""
    known = dict.fromkeys(place[0] for place in run)
    return [row for row in NAMES if row in known] + [row for row in known if row not in NAMES]


def places_of(run: Run, *rows: str) -> list[tuple[str, int, int]]:
    """(corruption, seed, images) that all these rows have, of the length with most corruptions, then the longest."""
    have = [{place[1:] for place in run if place[0] == row} for row in rows]
    shared = set.intersection(*have)
    corruptions: dict[int, set[str]] = {}
    for corruption, _, images in shared:
        corruptions.setdefault(images, set()).add(corruption)
    chosen = max(corruptions, key=lambda images: (len(corruptions[images]), images), default=0)
    return sorted(place for place in shared if place[2] == chosen)


def mean(run: Run, row: str, beside: str = ZERO_SHOT) -> float:
    """Percent, over corruptions of means over seeds, on the streams that another row has too."""
    by_corruption: dict[str, list[float]] = {}
    for place in places_of(run, row, beside):
        by_corruption.setdefault(place[0], []).append(run[(row, *place)].accuracy)
    return fmean(map(fmean, by_corruption.values()))


def gains(run: Run, row: str, over: str, places: Iterable[tuple[str, int, int]]) -> list[float]:
    """Points over another row under every corruption, each the mean over its seeds."""
    by_corruption: dict[str, list[float]] = {}
    for place in places:
        points = run[(row, *place)].accuracy - run[(over, *place)].accuracy
        by_corruption.setdefault(place[0], []).append(points)
    return list(map(fmean, by_corruption.values()))


def gain(run: Run, row: str, over: str) -> str:
    """The mean of the points over another row, and half of the interval where there are enough corruptions."""
    points = gains(run, row, over, places_of(run, row, over))
    margin = f" ± {margin_of_mean(points):.1f}" if len(points) >= FEWEST else ""
    return f"{fmean(points):+.1f}{margin}"


def ahead(run: Run, row: str, over: str) -> str:
    """Under how many corruptions it is better."""
    points = gains(run, row, over, places_of(run, row, over))
    return f"{sum(one > 0 for one in points)} of {len(points)}"


def passes(run: Run, row: str) -> tuple[float, float]:
    """Forward and backward, for each image."""
    scores = [run[(row, *place)] for place in places_of(run, row)]
    return fmean(own.forward for own in scores), fmean(own.backward for own in scores)


def extent(places: Sequence[tuple[str, int, int]]) -> str:
    """Corruptions x images of each, and how many streams of them there are where not every seed has all."""
    corruptions, seeds = ({place[at] for place in places} for at in (0, 1))
    streams = "one seed" if len(seeds) == 1 else f"{len(seeds)} seeds"
    if len(places) < len(corruptions) * len(seeds):
        streams = f"{len(places)} streams"
    return f"{len(corruptions)} x {places[0][2]:,}, {streams}"


def table(run: Run, times: Times) -> str:
    """One line per row."""
    batches = sorted({batch for _, batch in times})
    header = [
        "",
        "corruptions x images",
        "percent right",
        "gain over zero-shot",
        "ahead in",
        "passes forward, backward",
    ]
    header += [f"ms, batch {batch}" for batch in batches]
    header += [f"times a plain loop's speed, batch {batch}" for batch in batches]
    lines = [_line(header), _line([":--", *["--:"] * (len(header) - 1)])]
    for row in rows_of(run):
        places = places_of(run, row, ZERO_SHOT)
        if not places:
            continue
        forward, backward = passes(run, row)
        cells = [NAMES.get(row, row), extent(places), f"{mean(run, row):.1f}"]
        cells += [""] * 2 if row == ZERO_SHOT else [gain(run, row, ZERO_SHOT), ahead(run, row, ZERO_SHOT)]
        cells.append(f"{forward:.0f}, {backward:.0f}")
        cells += [_time(times, row, batch, "milliseconds") for batch in batches]
        cells += [_time(times, row, batch, "times_faster") for batch in batches]
        lines.append(_line(cells))
    return "\n".join(lines)


def paired(run: Run, row: str, over: str) -> str:
    """A gain in words, and on what."""
    places = places_of(run, row, over)
    middle = median(gains(run, row, over, places))
    return (
        f"{gain(run, row, over)} points, median {middle:+.1f}, ahead in {ahead(run, row, over)} corruptions "
        f"({extent(places)})"
    )


def on_first_images(run: Run, row: str) -> str:
    """Points over zero-shot on the shortest streams that both have as many corruptions of as of any, in words."""
    corruptions: dict[int, set[str]] = {}
    shared = [place[1:] for place in run if place[0] == row and (ZERO_SHOT, *place[1:]) in run]
    for corruption, _, images in shared:
        corruptions.setdefault(images, set()).add(corruption)
    shortest = max(corruptions, key=lambda images: (len(corruptions[images]), -images))
    places = sorted(place for place in shared if place[2] == shortest)
    return f"{fmean(gains(run, row, ZERO_SHOT, places)):+.1f} points ({extent(places)})"


def goals(run: Run, times: Times, batch: int) -> list[str]:
    """What was hoped for, beside what was seen."""
    rows, said = rows_of(run), list[str]()

    def shared(row: str, over: str) -> bool:
        return {row, over} <= set(rows) and bool(places_of(run, row, over))

    for row, over in PAIRS:
        if shared(row, over):
            goal = ", goal +2" if row in REGULARISED and over == "watt_s" else ""
            said.append(f"{NAMES[row]}, over {NAMES[over]}: {paired(run, row, over)}{goal}.")
    others = [row for row in rows if row not in OURS and shared(row, "default")]
    if others:
        # On the streams that each has with it: not all have run on the same.
        best = max(others, key=lambda row: fmean(gains(run, row, "default", places_of(run, row, "default"))))
        said.append(
            f"The default over the best of the others, {NAMES.get(best, best)}: {paired(run, 'default', best)}."
        )
    if shared("default", ZERO_SHOT):
        said.append(f"The default over zero-shot on the first images of a stream: {on_first_images(run, 'default')}.")
    if {"default", "watt_p"} <= set(rows):
        own, other = (sum(passes(run, row)) for row in ("default", "watt_p"))
        said.append(f"The default needs {own / other:.3f} of WATT-P's passes (goal 0.1).")
    if ("default", batch) in times and ("watt_p", batch) in times:
        own, other = (float(times[row, batch]["milliseconds"]) for row in ("default", "watt_p"))
        said.append(f"A batch of {batch} takes the default {own / other:.3f} of WATT-P's time (goal 0.1).")
    return said


def text(runs: Mapping[Streams, Run], times: Times) -> str:
    """All tables as Markdown."""
    parts = []
    for streams, run in runs.items():
        if ZERO_SHOT not in rows_of(run):
            raise InputError(f"TABLE: got no row {ZERO_SHOT!r} on {streams.dataset}; allowed are tables with it.")
        heading = (
            f"{streams.model} on {streams.dataset}, severity {streams.severity}, batches of {streams.batch}, "
            f"{streams.precision}. Percent right, mean over corruptions; rows with fewer images than zero-shot are to "
            "be held against it by their gains alone. Intervals are 95 % over corruptions."
        )
        # Times say nothing of a run in another precision.
        own = {place: line for place, line in times.items() if line["precision"] == streams.precision}
        parts += [heading, table(run, own), "\n".join(f"- {line}" for line in goals(run, own, streams.batch))]
        if own:
            line = next(iter(own.values()))
            how = f"{line['device']}, {line['precision']}"
            parts.append(f"Times: {how}; medians of whole calls, predicting and learning.")
    return "\n\n".join(part for part in parts if part)


def put_into(file: Path, found: str) -> None:
    """Replaces what is between the marks."""
    page = file.read_text("utf-8")
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise InputError(f"--into: got {file} without the marks; allowed is a file with {BEGIN} and {END}, once each.")
    before, _, rest = page.partition(BEGIN)
    file.write_text(f"{before}{BEGIN}\n\n{found}\n\n{END}{rest.partition(END)[2]}", "utf-8")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _time(times: Times, row: str, batch: int, column: str) -> str:
    value = times.get((row, batch), {}).get(column, "")
    return f"{float(value):.1f}" if value else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tables", type=Path, nargs="+", help="table.csv of polytta bench, one or more")
    parser.add_argument("--times", type=Path, help="CSV of scripts/time_clip.py")
    parser.add_argument("--into", type=Path, help="file to put the tables into, between the marks")
    options = parser.parse_args()
    found = text(runs_of(options.tables), times_of(options.times))
    print(found)
    if options.into is not None:
        put_into(options.into, found)


if __name__ == "__main__":
    main()
