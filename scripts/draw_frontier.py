"""Draws what populations of every size are worth against what they cost, as docs/frontier.svg, and prints the table.

    polytta bench --config benchmarks/grids/parts.toml --images 1000 ... --out out/parts
    polytta bench --config benchmarks/grids/repulsion_gn.toml --images 1000 ... --out out/repulsion
    python scripts/measure_frontier.py out/frontier.csv [--device cpu] --quick
    python scripts/draw_frontier.py docs/frontier.svg --runs out/parts out/repulsion --times out/frontier.csv

Without --runs and --times, from the committed results. Accuracy is the mean over corruptions at batch 1, severity 5;
what is drawn is the cost at batch 1 on a GPU.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from polytta.lab.pages.charts import Axis, Series, scatter_svg

RESULTS = Path("docs/results")
NAMES = {
    "off": "source",
    "deyo": "DeYO, K = 1",
    "naive": "naive, K = 3",
    "small": "small, K = 5",
    "three_lenses": "three lenses, K = 6",
    "default": "default, K = 10",
}
STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #5c6575; } .grid { stroke: #dfe3ea; } .lead { stroke: #b9c0cc; }
.dot { fill: #0072b2; } text.name { fill: #1d2530; } .s5.dot { fill: #b06f00; } text.s5 { font-weight: 600; }
</style><rect width="100%" height="100%" fill="#ffffff"/>"""


VARIANTS = {"off": "source", "deyo": "alone_0", "naive": "naive_3_0", "small": "looking"}
"""Rows of the runs that go by another name there."""
PLACES = (("cuda", "1"), ("cuda", "64"), ("cpu", "1"), ("cpu", "64"))
TITLES = ("GPU, batch 1", "GPU, batch 64", "CPU, batch 1", "CPU, batch 64")


def accuracies(tables: list[Path], model: str) -> dict[str, float]:
    """{row: percent right, mean over corruptions}."""
    found: dict[str, dict[str, float]] = {}
    for table in tables:
        with table.open(encoding="utf-8", newline="") as stream:
            for line in csv.DictReader(stream):
                if line["severity"] == "5" and line["model"].endswith(model):
                    found.setdefault(line["variant"], {})[line["corruption"]] = float(line["accuracy"])
    return {row: sum(values.values()) / len(values) for row, values in found.items()}


def costs(file: Path, model: str) -> dict[tuple[str, str, str], float]:
    """{(row, device, batch): milliseconds per image}."""
    with file.open(encoding="utf-8", newline="") as stream:
        return {
            (line["row"], line["device"], line["batch"]): float(line["milliseconds_per_image"])
            for line in csv.DictReader(stream)
            if line["model"] == model
        }


def table(right: dict[str, float], took: dict[tuple[str, str, str], float]) -> str:
    """What every size is worth and costs."""
    lines = ["| | percent right | " + " | ".join(TITLES) + " |", "|---" * 6 + "|"]
    for row, name in NAMES.items():
        variant = VARIANTS.get(row, row)
        cells = [f"{took[(row, *place)]:.3g}" if (row, *place) in took else "-" for place in PLACES]
        lines.append(f"| {name} | {right[variant]:.1f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def standalone(drawing: str) -> str:
    """A file of its own."""
    alone = drawing.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(">", f">{STYLE}", 1)
    return f"{alone}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--runs", type=Path, nargs="+", help="folders of polytta bench")
    parser.add_argument("--times", type=Path, default=RESULTS / "frontier.csv", help="of scripts/measure_frontier.py")
    parser.add_argument("--model", default="cifar10_resnet_gn")
    options = parser.parse_args()
    tables = [run / "table.csv" for run in options.runs] if options.runs else [RESULTS / "frontier_table.csv"]
    right, took = accuracies(tables, options.model), costs(options.times, options.model)
    print(table(right, took))
    points = [
        Series(name, number, np.array([took[row, "cuda", "1"]]), np.array([right[VARIANTS.get(row, row)]]))
        for number, (row, name) in enumerate(NAMES.items())
    ]
    x = Axis.logarithmic("milliseconds per image, one at a time, on one GPU", [float(point.x[0]) for point in points])
    y = Axis.over("percent right", [float(point.y[0]) for point in points])
    drawing = scatter_svg(points, x, y, "Accuracy of populations against what they cost")
    options.out.write_text(standalone(drawing), encoding="utf-8")


if __name__ == "__main__":
    main()
