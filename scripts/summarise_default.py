"""The tables of docs/findings.md: the default population beside its rivals, from the committed results.

    python scripts/summarise_default.py [docs/results]

A rival's *oracle rate* is the one of its rates with the best mean accuracy, picked with the labels, which no user has.
Intervals are 95 %, from the number of images, as if two rows had seen different ones: too wide rather than too narrow.
"""

import argparse
import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from statistics import stdev

MODELS = {
    "bundled/cifar10_resnet_gn": "ResNet-GN",
    "bundled/cifar10_vit_ln": "ViT",
    "bundled/cifar10_resnet_bn": "ResNet-BN",
    "timm/deit_tiny_patch16_224": "DeiT-Tiny",
    "efficientnet_lite0:build": "EfficientNet-Lite0",
    "resnet18_cifar10:build": "ResNet-18",
}
SCENARIOS = {
    "batch1": "batch 1",
    "mixed": "mixed",
    "label_shift": "label shift",
    "mild": "mild",
    "continual": "continual",
}
SEEDS = ("0", "1", "2")
RIVALS = {"tent": "Tent", "eata": "EATA", "sar": "SAR", "deyo": "DeYO", "roid": "ROID"}
GOALS = {
    ("ResNet-GN", "batch 1"): 10, ("ResNet-GN", "mixed"): 6, ("ResNet-GN", "label shift"): 7,
    ("ResNet-GN", "mild"): 9, ("ResNet-GN", "continual"): 6,
    ("ViT", "batch 1"): 8, ("ViT", "mixed"): 5, ("ViT", "label shift"): 6, ("ViT", "mild"): 8, ("ViT", "continual"): 5,
    ("ResNet-BN", "mixed"): 5, ("ResNet-BN", "label shift"): 5, ("ResNet-BN", "mild"): 3, ("ResNet-BN", "continual"): 3,
    ("DeiT-Tiny", "batch 1"): 4, ("DeiT-Tiny", "mixed"): 2, ("DeiT-Tiny", "label shift"): 2,
}  # fmt: skip
"""Points over the best rival that were hoped for before anything was measured."""


@dataclass
class Row:
    """One way to adapt in one panel: {corruption: accuracies of its seeds}, images of a corruption, calibration."""

    accuracy: dict[str, list[float]] = field(default_factory=dict)
    images: int = 0
    errors: list[float] = field(default_factory=list)

    @property
    def per_corruption(self) -> dict[str, float]:
        """Mean over seeds."""
        return {name: sum(values) / len(values) for name, values in self.accuracy.items()}

    @property
    def mean(self) -> float:
        """Over corruptions and seeds."""
        return sum(self.per_corruption.values()) / len(self.accuracy)

    @property
    def variance(self) -> float:
        """Of the mean, had other images been drawn; the seeds have the same ones."""
        shares = [value / 100 for value in self.per_corruption.values()]
        return sum(p * (1 - p) / self.images for p in shares) * (100 / len(shares)) ** 2

    @property
    def ece(self) -> float:
        """Mean calibration error."""
        return sum(self.errors) / len(self.errors)


Panel = dict[str, Row]
"""The rows of one model, scenario and severity."""


def read(folder: Path, seed: str | None = None) -> dict[tuple[str, str, str], Panel]:
    """{(model, scenario, severity): rows by name}, of one seed or of all."""
    panels: dict[tuple[str, str, str], Panel] = {}
    with (folder / "table.csv").open(encoding="utf-8", newline="") as stream:
        for line in csv.DictReader(stream):
            model = line["model"].partition("=")[0]
            if model not in MODELS or line["scenario"] not in SCENARIOS or seed not in (None, line["seed"]):
                continue
            place = (MODELS[model], SCENARIOS[line["scenario"]], line["severity"])
            row = panels.setdefault(place, {}).setdefault(line["variant"], Row())
            names = line["corruption"].split("+")
            values = [float(value) for value in line["per_corruption"].split()] or [float(line["accuracy"])]
            for name, value in zip(names, values, strict=True):
                row.accuracy.setdefault(name, []).append(value)
            row.images = int(line["images"]) // len(names)
            row.errors.append(float(line["ece"]))
    return panels


def rates_of(panel: Panel, rival: str) -> Panel:
    """A rival's row at the reference rate and those at others."""
    return {name: row for name, row in panel.items() if name == rival or name.rpartition("_")[0] == rival}


def oracle(panel: Panel, rival: str) -> tuple[str, Row]:
    """Its best rate, picked with labels."""
    return max(rates_of(panel, rival).items(), key=lambda item: item[1].mean)


def best_rival(panel: Panel) -> tuple[str, Row]:
    """The best of all at its best rate, or the source model where it beats them."""
    rivals = [oracle(panel, rival) for rival in RIVALS if rates_of(panel, rival)]
    return max([("source", panel["source"]), *rivals], key=lambda item: item[1].mean)


def difference(one: Row, other: Row) -> str:
    """Points, and half of the interval."""
    return f"{one.mean - other.mean:+.1f} ± {1.96 * sqrt(one.variance + other.variance):.1f}"


def worst(row: Row, source: Row) -> tuple[float, str]:
    """Smallest gain on a corruption, and which."""
    return min((row.per_corruption[name] - source.per_corruption[name], name) for name in row.accuracy)


def _called(name: str) -> str:
    rival, _, rate = name.partition("_")
    return RIVALS[rival] + (f", rate {int(rate) + 1}" if rate else ", reference rate")


def table(head: str, titles: Sequence[str], lines: Iterable[tuple[str, Sequence[str]]]) -> str:
    rows = [f"| {head} | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    return "\n".join(rows + [f"| {name} | " + " | ".join(cells) + " |" for name, cells in lines])


def goals(panels: dict[tuple[str, str, str], Panel], severity: str = "5") -> str:
    """Points of the default over the best rival at its oracle rate; on BatchNorm at batch 1 over the source model."""
    lines = []
    for model in MODELS.values():
        cells = []
        for scenario in SCENARIOS.values():
            panel = panels.get((model, scenario, severity), {})
            if "default" not in panel:
                cells.append("-")
                continue
            name, row = best_rival(panel)
            goal = GOALS.get((model, scenario))
            wanted = "" if goal is None else f", hoped for +{goal}"
            over = "over source" if name == "source" else f"over {_called(name)}"
            cells.append(f"{difference(panel['default'], row)} ({over}{wanted})")
        if set(cells) != {"-"}:
            lines.append((model, cells))
    return table("points", list(SCENARIOS.values()), lines)


def percents(panels: dict[tuple[str, str, str], Panel], model: str, severity: str = "5") -> str:
    """Percent right of everything, one model."""
    here = {scenario: panels[model, scenario, severity] for scenario in SCENARIOS.values()
            if (model, scenario, severity) in panels}  # fmt: skip

    def line(pick: Callable[[Panel], Row | None]) -> list[str]:
        found = [pick(panel) for panel in here.values()]
        return ["-" if row is None else f"{row.mean:.1f}" for row in found]

    lines = [("source", line(lambda panel: panel.get("source")))]
    for rival, label in RIVALS.items():
        lines.append((f"{label}, reference rate", line(lambda panel, rival=rival: panel.get(rival))))  # type: ignore[misc]
        lines.append((f"{label}, oracle rate", line(
            lambda panel, rival=rival: oracle(panel, rival)[1] if rates_of(panel, rival) else None)))  # type: ignore[misc]  # fmt: skip
    for name, label in (("rdumb", "RDumb"), ("tta", "test-time augmentation"), ("looking", "default, nothing learnt"),
                        ("default", "**default**"), ("large", "size large")):  # fmt: skip
        lines.append((label, line(lambda panel, name=name: panel.get(name))))  # type: ignore[misc]
    return table(f"{model}, percent right", list(here), [one for one in lines if set(one[1]) != {"-"}])


def safety(panels: dict[tuple[str, str, str], Panel]) -> str:
    """Worst corruption, learning's own share and calibration of the default."""
    lines = []
    for (model, scenario, severity), panel in panels.items():
        if not {"default", "source", "looking"} <= panel.keys():
            continue
        default = panel["default"]
        least, where = worst(default, panel["source"])
        cells = [
            f"{default.mean - panel['source'].mean:+.1f}",
            f"{least:+.1f} ({where.replace('_', ' ')})",
            difference(default, panel["looking"]),
            f"{default.ece:.3f}",
            f"{best_rival(panel)[1].ece:.3f}",
        ]
        lines.append((f"{model}, {scenario}, severity {severity}", cells))
    titles = ["over source", "worst corruption", "learning's share", "calibration error", "best rival's"]
    return table("default", titles, lines)


def headline(panels: dict[tuple[str, str, str], Panel], severity: str = "5") -> str:
    """README's table."""
    lines = []
    for model in MODELS.values():
        for scenario in SCENARIOS.values():
            panel = panels.get((model, scenario, severity), {})
            if "default" in panel:
                name, row = best_rival(panel)
                rival = "-" if name == "source" else f"{row.mean:.1f} ({RIVALS[name.partition('_')[0]]})"
                least, _ = worst(panel["default"], panel["source"])
                cells = [f"{panel['source'].mean:.1f}", rival, f"**{panel['default'].mean:.1f}**", f"{least:+.1f}"]
                lines.append((f"{model}, {scenario}", cells))
    titles = ["source", "best rival at its best rate", "`polytta.adapt(model)`", "its worst corruption over source"]
    return table("percent right", titles, lines)


def unfinished(panels: dict[tuple[str, str, str], Panel]) -> str:
    """Rows of runs that did not reach every corruption, beside the source model and looking on those they reached."""
    lines = []
    for (model, scenario, severity), panel in panels.items():
        for name, label in (("looking", "nothing learnt"), ("default", "**default**")):
            if name in panel:
                reached = panel[name].accuracy
                source, looking = (
                    Row({one: panel[row].accuracy[one] for one in reached}) for row in ("source", "looking")
                )
                least, where = worst(panel[name], source)
                cells = [
                    str(len(reached)),
                    f"{source.mean:.1f}",
                    f"{looking.mean:.1f}",
                    f"{panel[name].mean:.1f}",
                    f"{least:+.1f} ({where.replace('_', ' ')})",
                ]
                lines.append((f"{model}, {scenario}, severity {severity}, {label}", cells))
    titles = ["corruptions", "source on them", "nothing learnt on them", "percent right", "worst over source"]
    return table("", titles, lines)


def over_seeds(folder: Path) -> str:
    """Points of the default over the source model, seed by seed."""
    each = [read(folder, seed) for seed in SEEDS]
    lines = []
    for place in each[0]:
        gains = [panels[place]["default"].mean - panels[place]["source"].mean for panels in each]
        lines.append((f"{place[0]}, {place[1]}", [*(f"{gain:+.1f}" for gain in gains), f"{stdev(gains):.1f}"]))
    return table("points over source", [*(f"seed {seed}" for seed in SEEDS), "standard deviation"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("docs/results"))
    panels = read(parser.parse_args().folder)
    if any(len(row.accuracy) < len(panel["source"].accuracy) for panel in panels.values() for row in panel.values()):
        print(unfinished(panels))
        return
    models = [model for model in MODELS.values() if any(place[0] == model for place in panels)]
    print(headline(panels), goals(panels), *(percents(panels, model) for model in models), safety(panels), sep="\n\n")


if __name__ == "__main__":
    main()
