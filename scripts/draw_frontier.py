"""Draws what populations of every size are worth against what they cost, as docs/frontier.svg, and prints the table.

    polytta bench --config benchmarks/grids/default_gn_batch64.toml --datasets cifar10=DATA/cifar10_test.npz \
        --images 256 --scenarios mild --precision fp32 --out RUN --variants source deyo naive looking small default \
        large
    python scripts/measure_frontier.py docs/results/frontier.csv --device cpu --quick
    python scripts/draw_frontier.py RUN docs/results/frontier.csv docs/frontier.svg

Accuracy is the mean over the corruptions of the run, cost that of the same model at batches of 64 on the same device.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from polytta.lab.pages.charts import Axis, Series, scatter_svg

NAMES = {
    "off": "source",
    "deyo": "DeYO, K = 1",
    "naive": "naive, K = 3",
    "looking": "nothing learnt, K = 5",
    "small": "small, K = 6",
    "default": "default, K = 10",
    "large": "large, K = 15",
}
STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #5c6575; } .grid { stroke: #dfe3ea; } .lead { stroke: #b9c0cc; }
.dot { fill: #0072b2; } text.name { fill: #1d2530; } .s5.dot { fill: #b06f00; } text.s5 { font-weight: 600; }
</style><rect width="100%" height="100%" fill="#ffffff"/>"""


def accuracies(table: Path) -> dict[str, float]:
    """{row: percent right, mean over corruptions}."""
    found: dict[str, list[float]] = {}
    with table.open(encoding="utf-8", newline="") as stream:
        for line in csv.DictReader(stream):
            found.setdefault(line["variant"], []).append(float(line["accuracy"]))
    return {row: sum(values) / len(values) for row, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path, help="folder of polytta bench")
    parser.add_argument("times", type=Path, help="CSV of scripts/measure_frontier.py")
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="cifar10_resnet_gn")
    options = parser.parse_args()
    right = accuracies(options.run / "table.csv")
    right["off"] = right["source"]
    costs: dict[tuple[str, str], float] = {}
    with options.times.open(encoding="utf-8", newline="") as stream:
        for line in csv.DictReader(stream):
            if line["model"] == options.model:
                costs[line["row"], line["batch"]] = float(line["milliseconds_per_image"])
    print("| | percent right | ms per image, batch 64 | ms per image, batch 1 |\n|---|---|---|---|")
    points = []
    for number, (row, name) in enumerate(NAMES.items()):
        if row not in right or (row, "64") not in costs:
            continue
        print(f"| {name} | {right[row]:.1f} | {costs[row, '64']:.2f} | {costs[row, '1']:.2f} |")
        points.append(Series(name, number, np.array([costs[row, "64"]]), np.array([right[row]])))
    x = Axis.logarithmic("milliseconds per image, batches of 64", [float(point.x[0]) for point in points])
    y = Axis.over("percent right", [float(point.y[0]) for point in points])
    drawing = scatter_svg(points, x, y, "Accuracy of populations against what they cost")
    alone = drawing.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(">", f">{STYLE}", 1)
    options.out.write_text(f"{alone}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
