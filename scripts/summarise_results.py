"""The tables of docs/findings.md, from the committed results.

python scripts/summarise_results.py [docs/results/table.csv]
"""

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from statistics import fmean

MODELS = {"bundled/cifar10_resnet_gn": "GN", "bundled/cifar10_vit_ln": "ViT", "bundled/cifar10_resnet_bn": "BN"}
SCENARIOS = {"batch1": "batch 1", "mixed": "mixed", "label_shift": "label shift", "mild": "mild"}
SINGLE = ("tent", "sar", "deyo")
ROWS = {
    "source": "source",
    "source_mirror": "source, mirror image too",
    "naive": "Naive, K = 3",
    "kl": "KL, K = 3",
    "svgd": "SVGD, K = 3",
    "grad": "Grad, K = 3",
    "grad_mixed": "Grad, mixed optimizers",
    "grad_flips": "Grad, flips",
    "span": "four learning rates, evidence",
    "source_lenses": "five lenses, evidence, nothing learnt",
    "lenses": "**five lenses, evidence, DeYO**",
}
Panels = dict[tuple[str, str], dict[str, list[dict[str, str]]]]


def read(path: Path) -> Panels:
    """Records by (model, scenario), then by row."""
    panels: Panels = defaultdict(lambda: defaultdict(list))
    with path.open(newline="") as file:
        for record in csv.DictReader(file):
            panels[record["model"], record["scenario"]][record["variant"]].append(record)
    order = [(model, scenario) for model in MODELS for scenario in SCENARIOS]
    return {panel: panels[panel] for panel in order if panel in panels}


def mean(records: list[dict[str, str]], field: str = "accuracy") -> float:
    return fmean(float(record[field]) for record in records)


def worst(rows: dict[str, list[dict[str, str]]], name: str) -> float:
    """Smallest gain over the source model on one corruption, seeds averaged."""
    gains = []
    for corruption in {record["corruption"] for record in rows[name]}:
        own, source = ([r for r in rows[row] if r["corruption"] == corruption] for row in (name, "source"))
        gains.append(mean(own) - mean(source))
    return min(gains)


def table(head: str, panels: Panels, lines: dict[str, list[str]]) -> str:
    titles = [f"{MODELS[model]} {SCENARIOS[scenario]}" for model, scenario in panels]
    rows = [f"| {head} | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    return "\n".join(rows + [f"| {name} | " + " | ".join(cells) + " |" for name, cells in lines.items()])


def accuracies(panels: Panels) -> str:
    singles = [max(SINGLE, key=lambda name, rows=rows: mean(rows[name])) for rows in panels.values()]
    best = [mean(rows[name]) for name, rows in zip(singles, panels.values(), strict=True)]
    lines: dict[str, list[str]] = {}
    for row, label in ROWS.items():
        lines[label] = [f"{mean(rows[row]):.1f}" if row in rows else "-" for rows in panels.values()]
        if row == "source":
            shown = {"tent": "Tent", "sar": "SAR", "deyo": "DeYO"}
            lines["best single method"] = [f"{b:.1f} ({shown[name]})" for b, name in zip(best, singles, strict=True)]
    lines["lenses over the best single"] = [
        f"{mean(rows['lenses']) - b:+.1f}" for rows, b in zip(panels.values(), best, strict=True)
    ]
    lines["lenses, worst corruption over source"] = [
        "-" if scenario == "mixed" else f"{worst(rows, 'lenses'):+.1f}" for (_, scenario), rows in panels.items()
    ]
    return table("percent right", panels, lines)


def disagreement(panels: Panels) -> str:
    lines = {
        ROWS[row].strip("*"): [f"{100 * mean(rows[row], 'disagreement'):.1f}" for rows in panels.values()]
        for row in ("naive", "svgd", "grad", "lenses")
    }
    return table("percent of images particles disagree on", panels, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path, nargs="?", default=Path("docs/results/table.csv"))
    panels = read(parser.parse_args().table)
    print(accuracies(panels), disagreement(panels), sep="\n\n")


if __name__ == "__main__":
    main()
