"""The tables of docs/findings.md on what each part of the default is worth, and what repulsion is.

    polytta bench --config benchmarks/grids/parts.toml --images 1000 ... --out out/parts
    polytta bench --config benchmarks/grids/repulsion_gn.toml --images 1000 ... --out out/repulsion     (and _vit)
    python scripts/summarise_parts.py --pair out/parts out/repulsion    writes docs/results/paired.csv
    python scripts/summarise_parts.py                                   prints the tables

Every row is held against another one on the same streams, image by image: intervals are 95 %, of the mean difference.
"""

import argparse
import csv
from collections.abc import Iterable, Sequence
from math import sqrt
from pathlib import Path

import numpy as np
from summarise_default import MODELS, table

from polytta.lab.bench import read_records

PAIRED = Path("docs/results/paired.csv")
COLUMNS = ("model", "severity", "row", "over", "points", "half_interval", "worst", "worst_on", "images")
PARTS = {
    "looking": 'nothing learnt (`size="small"`)',
    "all_learn": "all learn",
    "ten_times_hotter": "ten times as hot",
    "one_lens": "no lenses",
    "without_farther": "without farther",
    "without_much_sharper": "without much sharper",
    "without_clearer_mirrored": "without clearer and mirrored",
    "without_much_farther": "without much farther",
    "mean_probability": "mean probability instead of evidence",
    "without_restarts": "without restarts",
    "without_sleep": "without sleep",
    "three_lenses": "three lenses",
    "of_tent": "Tent instead of DeYO",
    "of_three_methods": "Tent, SAR and DeYO",
    "with_kl": "KL between particles",
    "with_svgd": "SVGD between particles",
    "with_grad": "Grad between particles",
}
REPULSION = {"alone": "one alone", "naive_3": "naive, K = 3", "kl_3": "KL, K = 3", "svgd_3": "SVGD, K = 3",
             "grad_3": "Grad, K = 3", "grad_strong_5": "Grad, K = 5, weight 1"}  # fmt: skip
RATES = {"0": "", "1": ", four times the rate"}
Pairs = dict[tuple[str, str, str, str], dict[str, str]]
"""{(model, severity, row, over): line of the CSV}."""


def wanted(rows: Iterable[str]) -> list[tuple[str, str]]:
    """Which rows are held against which."""
    known = set(rows)
    found = [(row, "default") for row in PARTS if {row, "default"} <= known]
    for name in REPULSION:
        for rate in RATES:
            row, base = f"{name}_{rate}", "source" if name == "alone" else f"alone_{rate}"
            found += [(row, base)] if {row, base} <= known else []
    return found


def pair(folders: Sequence[Path]) -> list[dict[str, object]]:
    """Mean differences over corruptions, and half of their intervals."""
    right: dict[tuple[str, str], dict[str, dict[str, np.ndarray]]] = {}
    for folder in folders:
        for record in read_records(folder):
            cell = record.cell
            place = right.setdefault((cell.model, str(cell.severity)), {})
            place.setdefault(cell.variant, {})[str(cell.corruption)] = record.correct.astype(np.float64)
    lines: list[dict[str, object]] = []
    for (model, severity), rows in right.items():
        for row, over in wanted(rows):
            differences = {name: 100 * (own - rows[over][name]) for name, own in rows[row].items()}
            variance = sum(one.var() / len(one) for one in differences.values()) / len(differences) ** 2
            gains = {name: 100 * float((own - rows["source"][name]).mean()) for name, own in rows[row].items()}
            worst_on = min(gains, key=lambda name: gains[name])
            points = float(np.mean([one.mean() for one in differences.values()]))
            values = (model, severity, row, over, f"{points:.3f}", f"{1.96 * sqrt(variance):.3f}",
                      f"{gains[worst_on]:.2f}", worst_on, sum(map(len, differences.values())))  # fmt: skip
            lines.append(dict(zip(COLUMNS, values, strict=True)))
    return lines


def read(file: Path) -> Pairs:
    with file.open(encoding="utf-8", newline="") as stream:
        return {(one["model"], one["severity"], one["row"], one["over"]): one for one in csv.DictReader(stream)}


def cell_of(line: dict[str, str]) -> str:
    return f"{float(line['points']):+.1f} ± {float(line['half_interval']):.1f}"


def parts(pairs: Pairs) -> str:
    """One part of the default changed at a time."""
    lines = []
    for name, label in PARTS.items():
        line = pairs["bundled/cifar10_resnet_gn", "5", name, "default"]
        worst = f"{float(line['worst']):+.1f} ({line['worst_on'].replace('_', ' ')})"
        lines.append((label, [cell_of(line), worst]))
    return table("", ["over the default", "worst corruption over source"], lines)


def repulsion(pairs: Pairs) -> str:
    """Several that learn side by side, and several that repel one another, over one alone at the same rate."""
    titles, rows = [], [(label, list[str]()) for label in REPULSION.values()]
    for model, severity in sorted({place[:2] for place in pairs if place[3] == "source"}):
        for rate, words in RATES.items():
            titles.append(f"{MODELS[model]}, severity {severity}{words}")
            for (_, cells), name in zip(rows, REPULSION, strict=True):
                over = "source" if name == "alone" else f"alone_{rate}"
                cells.append(cell_of(pairs[model, severity, f"{name}_{rate}", over]))
    return table("points", titles, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pair", type=Path, nargs="+", help="folders of polytta bench")
    options = parser.parse_args()
    if options.pair:
        with PAIRED.open("w", encoding="utf-8", newline="") as stream:
            lines = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
            lines.writeheader()
            lines.writerows(pair(options.pair))
    pairs = read(PAIRED)
    print(parts(pairs), repulsion(pairs), sep="\n\n")


if __name__ == "__main__":
    main()
