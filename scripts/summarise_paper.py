"""The tables of docs/findings.md about the paper's populations, from the committed results.

python scripts/summarise_paper.py [docs/results/paper]
"""

import argparse
from pathlib import Path

from polytta.lab.pages.bench.panel import Panel, Row
from polytta.lab.pages.bench.panels import panels
from polytta.lab.pages.bench.read import read_folder

MODELS = {"bundled/cifar10_resnet_gn": "GN", "bundled/cifar10_vit_ln": "ViT", "bundled/cifar10_resnet_bn": "BN"}
SCENARIOS = {"batch1": "batch 1", "mixed": "mixed", "label_shift": "label shift", "mild": "mild"}
ROWS = {
    "source": "source",
    "source_mirror": "source, mirror image too",
    "naive": "Naive, K = 3",
    "kl": "KL, K = 3",
    "svgd": "SVGD, K = 3",
    "grad": "Grad, K = 3",
    "grad_mixed": "Grad, mixed optimizers",
    "grad_flips": "Grad, flips",
}
NAMES = {"tent": "Tent", "sar": "SAR", "deyo": "DeYO"}


def read(folder: Path) -> list[Panel]:
    """The panels of the results in the order of ``MODELS`` and ``SCENARIOS``."""
    found = {(panel.fields["model"], panel.fields["scenario"]): panel for panel in panels(read_folder(folder).entries)}
    order = [(model, scenario) for model in MODELS for scenario in SCENARIOS]
    return [found[place] for place in order if place in found]


def row(panel: Panel, name: str) -> Row | None:
    return next((row for row in panel.rows if row.name == name), None)


def mean(panel: Panel, row: Row | None, measure: str = "accuracy") -> float:
    """Over corruptions and seeds."""
    stat = None if row is None else row.average(panel.columns, measure)
    assert stat is not None, f"{panel.title}: not all cells of a row were run"
    return stat.mean


def table(head: str, results: list[Panel], lines: dict[str, list[str]]) -> str:
    titles = [f"{MODELS[panel.fields['model']]} {SCENARIOS[panel.fields['scenario']]}" for panel in results]
    rows = [f"| {head} | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    return "\n".join(rows + [f"| {name} | " + " | ".join(cells) + " |" for name, cells in lines.items()])


def accuracies(results: list[Panel]) -> str:
    lines: dict[str, list[str]] = {}
    for name, label in ROWS.items():
        lines[label] = [f"{mean(panel, own):.1f}" if (own := row(panel, name)) else "-" for panel in results]
        if name == "source":
            singles = [(panel.best_single, panel) for panel in results]
            lines["best single method"] = [f"{mean(p, own):.1f} ({NAMES[own.name]})" for own, p in singles if own]
    return table("percent right", results, lines)


def disagreement(results: list[Panel]) -> str:
    lines = {
        ROWS[name]: [f"{100 * mean(panel, row(panel, name), 'disagreement'):.1f}" for panel in results]
        for name in ("naive", "svgd", "grad")
    }
    return table("percent of images particles disagree on", results, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("docs/results/paper"))
    results = read(parser.parse_args().folder)
    print(accuracies(results), disagreement(results), sep="\n\n")


if __name__ == "__main__":
    main()
