"""The table of docs/search.md that holds today's lenses against those of before, from the committed results.

    python scripts/summarise_lenses.py [docs/results/lenses_table.csv]

Intervals are 95 %, from the number of images, as if two rows had seen different ones: too wide rather than too narrow.
"""

import argparse
import csv
from collections import defaultdict
from math import sqrt
from pathlib import Path

MODELS = {
    "bundled/cifar10_resnet_gn": "ResNet-GN",
    "bundled/cifar10_vit_ln": "ViT",
    "bundled/cifar10_resnet_bn": "ResNet-BN",
}
ROWS = {"looking": "nothing learnt", "default": "learning"}
HEAD = "| percent right | source | lenses before | lenses today | gained | worst over source, before | today |"


def read(file: Path) -> dict[tuple[str, str], dict[str, tuple[float, int]]]:
    """{(model, row): {corruption: (percent right, images)}}."""
    found: dict[tuple[str, str], dict[str, tuple[float, int]]] = defaultdict(dict)
    with file.open(newline="") as lines:
        for line in csv.DictReader(lines):
            own = found[line["model"], line["variant"]]
            own[line["corruption"]] = float(line["accuracy"]), int(line["images"])
    return found


def table(found: dict[tuple[str, str], dict[str, tuple[float, int]]]) -> str:
    """A line for every model, with learning and without where both were run."""
    lines = [HEAD, "|---" * HEAD.count(" | ") + "|---|"]
    for model, name in MODELS.items():
        for row, words in ROWS.items():
            kinds = [found.get((model, kind)) for kind in ("source", f"{row}_optics", row)]
            if any(kind is None for kind in kinds):
                continue
            source, before, today = (kind for kind in kinds if kind is not None)
            images = sum(number for _, number in source.values())
            means = [sum(right for right, _ in kind.values()) / len(kind) for kind in (source, before, today)]
            spread = 1.96 * sqrt(sum(mean * (100 - mean) for mean in means[1:]) / images)
            worst = [min(kind[which][0] - source[which][0] for which in source) for kind in (before, today)]
            lines.append(
                f"| {name}, {words} | {means[0]:.1f} | {means[1]:.1f} | **{means[2]:.1f}** | "
                f"{means[2] - means[1]:+.1f} ± {spread:.1f} | {worst[0]:+.1f} | {worst[1]:+.1f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path, nargs="?", default=Path("docs/results/lenses_table.csv"))
    print(table(read(parser.parse_args().file)))


if __name__ == "__main__":
    main()
