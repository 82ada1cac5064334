"""Tables of docs/clip.md: every CLIP row of a run beside zero-shot, with what it costs.

    polytta bench --config benchmarks/grids/clip_batch128.toml ... --out out/clip    (pieces: see that file)
    python scripts/time_clip.py --out out/clip_times.csv
    python scripts/summarise_clip.py out/clip out/clothes --times out/clip_times.csv --into docs/clip.md

Prints the tables, and with --into puts them between the marks in that file. Gains are over zero-shot on the same
images; their intervals are 95 %, from the paired differences image by image. Seeds have the same images in another
order and count as one draw of them; corruptions count as draws of their own. Costly rows may have fewer images or
corruptions than others: a row is held against another on the streams that both have, of the length at which they have
most corruptions, the longer of two such, and the table says which.
Passes are images through the image encoder for each image answered, over all particles, views and steps.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from pathlib import Path

import numpy as np

from polytta.errors import InputError
from polytta.lab.bench import read_records
from polytta.lab.bench.record import Record

BEGIN, END = "<!-- made by scripts/summarise_clip.py: begin -->", "<!-- made by scripts/summarise_clip.py: end -->"
ZERO_SHOT = "source"
FIRST_BATCHES = 8
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
    "prompts_own": "a template each, by evidence",
    "looking": "default, never learning",
    "default": "**default**",
}
OURS = ("default", "looking", "prompts_own", "watt_lenses")
REGULARISED = ("watt_s_aug_kl", "watt_s_aug_svgd", "watt_s_aug_grad")

Run = Mapping[tuple[str, str, int, int], Record]
"""{(row, corruption, seed, images): record}."""
Times = Mapping[tuple[str, int], Mapping[str, str]]
"""{(row, batch): line of the CSV}."""


def runs_of(records: Iterable[Record]) -> dict[tuple[str, str, int], Run]:
    """{(model, dataset, batch size): its records}."""
    found: dict[tuple[str, str, int], dict[tuple[str, str, int, int], Record]] = {}
    for record in records:
        cell = record.cell
        if cell.corruption is None or not isinstance(cell.corruption, str):
            continue
        place = (cell.model, cell.dataset, cell.batch_size)
        found.setdefault(place, {})[cell.variant, cell.corruption, cell.seed, record.results.images] = record
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
        by_corruption.setdefault(place[0], []).append(run[(row, *place)].results.accuracy)
    return float(np.mean([np.mean(own) for own in by_corruption.values()]))


def gain(run: Run, row: str, over: str) -> tuple[float, float]:
    """Points over another row on the streams both have, and half of the interval."""
    differences: dict[str, list[float]] = {}
    variances: dict[str, list[float]] = {}
    for place in places_of(run, row, over):
        own, other = (run[(name, *place)].correct.astype(np.float64) for name in (row, over))
        differences.setdefault(place[0], []).append(float((own - other).mean()))
        variances.setdefault(place[0], []).append(float((own - other).var() / len(own)))
    points = float(np.mean([np.mean(own) for own in differences.values()]))
    spread = sqrt(sum(float(np.mean(own)) for own in variances.values())) / len(variances)
    return 100 * points, 100 * 1.96 * spread


def passes(run: Run, row: str) -> tuple[float, float]:
    """Forward and backward, for each image."""
    results = [run[(row, *place)].results for place in places_of(run, row)]
    images = sum(own.images for own in results)
    forward, backward = (sum(getattr(own, f"{way}_samples") for own in results) for way in ("forward", "backward"))
    return forward / images, backward / images


def extent(run: Run, row: str) -> str:
    """Corruptions x images."""
    places = places_of(run, row, ZERO_SHOT)
    return f"{len({corruption for corruption, _, _ in places})} x {places[0][2]:,}"


def table(run: Run, times: Times) -> str:
    """One line per row."""
    batches = sorted({batch for _, batch in times})
    header = ["", "corruptions x images", "percent right", "gain over zero-shot", "passes forward, backward"]
    header += [f"ms, batch {batch}" for batch in batches]
    header += [f"times a plain loop's speed, batch {batch}" for batch in batches]
    lines = [_line(header), _line([":--", *["--:"] * (len(header) - 1)])]
    for row in rows_of(run):
        if not places_of(run, row, ZERO_SHOT):
            continue
        gained = ""
        if row != ZERO_SHOT:
            points, half = gain(run, row, ZERO_SHOT)
            gained = f"{points:+.1f} ± {half:.1f}"
        forward, backward = passes(run, row)
        cells = [NAMES.get(row, row), extent(run, row), f"{mean(run, row):.1f}", gained]
        cells.append(f"{forward:.0f}, {backward:.0f}")
        cells += [_time(times, row, batch, "milliseconds") for batch in batches]
        cells += [_time(times, row, batch, "times_faster") for batch in batches]
        lines.append(_line(cells))
    return "\n".join(lines)


def paired(run: Run, row: str, over: str) -> str:
    """A gain in words, and on what."""
    points, half = gain(run, row, over)
    places = places_of(run, row, over)
    corruptions = len({place[0] for place in places})
    return f"{points:+.1f} ± {half:.1f} points ({corruptions} corruption(s), {places[0][2]:,} images of each)"


def by_batch(run: Run, row: str, batch: int) -> str:
    """Points over zero-shot, batch after batch, for the first few."""
    places = places_of(run, row, ZERO_SHOT)
    right = [run[(row, *place)].correct.astype(np.float64) for place in places]
    beside = [run[(ZERO_SHOT, *place)].correct.astype(np.float64) for place in places]
    gained = 100 * (np.stack(right) - np.stack(beside)).mean(axis=0)
    starts = range(0, min(len(gained), FIRST_BATCHES * batch), batch)
    return ", ".join(f"{gained[start : start + batch].mean():+.1f}" for start in starts)


def goals(run: Run, times: Times, batch: int) -> list[str]:
    """What was hoped for, beside what was seen."""
    rows, said = rows_of(run), []
    for row in ("watt_s_aug", *REGULARISED):
        if row in rows and "watt_s" in rows and places_of(run, row, "watt_s"):
            goal = " (goal +2)" if row in REGULARISED else ""
            said.append(f"{NAMES[row]} over WATT-S: {paired(run, row, 'watt_s')}{goal}.")
    for row in REGULARISED:
        if row in rows and "watt_s_aug" in rows and places_of(run, row, "watt_s_aug"):
            said.append(f"{NAMES[row]} over WATT-S+Aug: {paired(run, row, 'watt_s_aug')}.")
    if {"watt_lenses", "watt_s"} <= set(rows) and places_of(run, "watt_lenses", "watt_s"):
        said.append(f"{NAMES['watt_lenses']}, over WATT-S: {paired(run, 'watt_lenses', 'watt_s')}.")
    others = [row for row in rows if row not in OURS and "default" in rows and places_of(run, row, "default")]
    if others:
        # On the streams that each has with it: not all have run on the same.
        best = max(others, key=lambda row: gain(run, row, "default")[0])
        name = NAMES.get(best, best)
        said.append(f"The default over the best of the others, {name}: {paired(run, 'default', best)}.")
    if "default" in rows:
        said.append(f"The default over zero-shot on its first batches: {by_batch(run, 'default', batch)}.")
    if {"default", "watt_p"} <= set(rows):
        own, other = (sum(passes(run, row)) for row in ("default", "watt_p"))
        said.append(f"The default needs {own / other:.3f} of WATT-P's passes (goal 0.1).")
    if ("default", batch) in times and ("watt_p", batch) in times:
        own, other = (float(times[row, batch]["milliseconds"]) for row in ("default", "watt_p"))
        said.append(f"A batch of {batch} takes the default {own / other:.3f} of WATT-P's time (goal 0.1).")
    return said


def text(records: Sequence[Record], times: Times) -> str:
    """All tables as Markdown."""
    parts = []
    for (model, dataset, batch), run in sorted(runs_of(records).items()):
        rows = rows_of(run)
        if ZERO_SHOT not in rows:
            raise InputError(f"RUN: got no row {ZERO_SHOT!r} on {dataset}; allowed are runs with it.")
        places = places_of(run, ZERO_SHOT)
        first = run[(ZERO_SHOT, *places[0])]
        seeds = {seed for _, seed, _ in places}
        heading = (
            f"{model} on {dataset}, severity {first.cell.severity}, {len(seeds)} seed(s), batches of {batch}, "
            f"{first.cell.option('precision')}, on {_device(first)}. Percent right, mean over corruptions; rows with "
            "fewer images than zero-shot are to be held against it by their gains alone."
        )
        # Times say nothing of a run on another device.
        own = {place: line for place, line in times.items() if line["device"] == _device(first)}
        parts += [heading, table(run, own), "\n".join(f"- {line}" for line in goals(run, own, batch))]
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


def _device(record: Record) -> str:
    name = str(record.environment.get("device", "an unnamed device"))
    return "a CPU" if name == "cpu" else name


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _time(times: Times, row: str, batch: int, column: str) -> str:
    value = times.get((row, batch), {}).get(column, "")
    return f"{float(value):.1f}" if value else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", help="folders of polytta bench")
    parser.add_argument("--times", type=Path, help="CSV of scripts/time_clip.py")
    parser.add_argument("--note", help="what else is to be known of the run, said below its tables")
    parser.add_argument("--into", type=Path, help="file to put the tables into, between the marks")
    options = parser.parse_args()
    tables = text([record for run in options.runs for record in read_records(run)], times_of(options.times))
    found = "\n\n".join(part for part in (tables, options.note) if part)
    print(found)
    if options.into is not None:
        put_into(options.into, found)


if __name__ == "__main__":
    main()
