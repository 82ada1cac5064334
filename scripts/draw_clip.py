"""Draws what every CLIP row gains over zero-shot against its time for a batch, as docs/clip.svg.

    python scripts/draw_clip.py docs/clip.svg

From the committed tables, docs/results/clip_table.csv and clip_times.csv: gains in points, mean over fifteen
corruptions, and milliseconds per batch of 128 on a GPU. Rows below zero are left out.
"""

import argparse
from pathlib import Path
from statistics import fmean

import numpy as np
from draw_frontier import RESULTS, standalone
from summarise_clip import NAMES, REGULARISED, ZERO_SHOT, Run, Times, gains, places_of, rows_of, runs_of, times_of

from polytta.lab.pages.charts import Axis, Series, scatter_svg

BATCH = 128
SHORT = {
    "looking": "five lenses, no learning",
    "default": "default",
    "watt_lenses": "WATT-S, lenses",
    # The regularised form that gains most stands for all.
    "watt_s_aug_grad": "WATT-S+Aug+Reg",
}


def points_of(run: Run, times: Times) -> dict[str, tuple[float, float]]:
    """{name: (milliseconds, points over zero-shot)} of the rows that gain something."""
    found = {}
    for row in rows_of(run):
        if row == ZERO_SHOT or (row, BATCH) not in times or (row in REGULARISED and row not in SHORT):
            continue
        gained = fmean(gains(run, row, ZERO_SHOT, places_of(run, row, ZERO_SHOT)))
        if gained > 0:
            found[SHORT.get(row, NAMES.get(row, row))] = (float(times[row, BATCH]["milliseconds"]), gained)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    run = next(iter(runs_of([RESULTS / "clip_table.csv"]).values()))
    found = points_of(run, times_of(RESULTS / "clip_times.csv"))
    points = [
        Series(name, int(name == "default") * 5, np.array([milliseconds]), np.array([gained]))
        for name, (milliseconds, gained) in found.items()
    ]
    x = Axis.logarithmic("milliseconds per batch of 128, on one GPU", [float(point.x[0]) for point in points])
    y = Axis.over("points over zero-shot", [0.0, *(float(point.y[0]) for point in points)])
    drawing = scatter_svg(points, x, y, "What CLIP methods gain over zero-shot against the time they take")
    options.out.write_text(standalone(drawing), encoding="utf-8")


if __name__ == "__main__":
    main()
