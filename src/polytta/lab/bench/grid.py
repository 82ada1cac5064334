"""The grid of a benchmark: every axis as a typed value, and the cells it stands for."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import tyro

from polytta.data.corruption_names import CORRUPTIONS, SEVERITIES
from polytta.errors import ConfigError
from polytta.lab.bench.cell import OPTIONS, Cell, listed, part_name
from polytta.lab.bench.data import CLEAN, PLAIN, default_corruptions, split_dataset, split_path
from polytta.lab.bench.given_options import read_options
from polytta.lab.bench.record import canonical_json
from polytta.lab.bench.variants import VARIANTS, RowSettings, checked
from polytta.settings.presets import COMPOSING
from polytta.stream import SCENARIOS

# One stream over all corruptions; the other scenarios have one stream for each.
POOLED = ("mixed", "continual", "markov")
# Methods whose rows no learning rate changes.
_UNMOVED = ("source", "norm")
# Options of polytta.adapt that have a flag of their own; a row's own value wins.
_FOR_ALL_ROWS = {"preset", "precision"}


@dataclass(frozen=True)
class Grid:
    """A benchmark: models x datasets x scenarios x severities x corruptions x rows x seeds.

    Every field is also a flag of `polytta bench` and a key of the file it reads with --config.
    """

    models: tuple[str, ...] = ("bundled/cifar10_resnet_gn",)
    """Source models, as NAME or NAME=FILE with the weights: bundled/NAME, timm/NAME.TAG, torchvision/NAME,
    open_clip/ARCHITECTURE/TAG (with the dataset's class names, as bundled/mini_clip), or your own as module:function
    (modules in the current folder are found). The function returns a torch module in whose `pretrained_cfg` input_size
    (3, height, width), mean, std (on the scale 0 to 1) and num_classes are told, or a polytta.models.SourceModel:
    images are read as RGB, resized on their shorter side, cut in the middle to that size, and normalised by mean and
    std."""
    datasets: tuple[str, ...] = ("bundled",)
    """bundled, a dataset `polytta data status` lists, or a path, also as NAME=PATH: a folder with a folder of images
    per class, a folder that `polytta corrupt` wrote, an npz file with x and y, or WebDataset tar files. Labels follow
    the sorted names of the folders."""
    corruptions: tuple[str, ...] = ()
    """Corruptions; "clean" stands for the images as they are. By default the fifteen common ones, for a folder that
    `polytta corrupt` wrote all it holds, and for other images in folders or tar files clean."""
    severities: tuple[int, ...] = (5,)
    """1 to 5."""
    scenarios: tuple[str, ...] = ("batch1",)
    """batch1, mild, label_shift: one stream per corruption. mixed, continual, markov: one stream over all of them."""
    variants: Annotated[
        tuple[str, ...],
        tyro.conf.arg(help=f"Rows by name: {', '.join(VARIANTS)}, and those that the file of --config defines."),
    ] = ("source", "tent", "sar", "deyo", "naive", "kl", "svgd", "grad")
    methods: tuple[str, ...] = ()
    """More rows: each of these methods (a name, or module:Class) with each of --diversities, or alone where there are
    none."""
    diversities: tuple[str, ...] = ()
    """See --methods."""
    particles: tuple[int, ...] = ()
    """Run each row that has several particles with each of these numbers instead."""
    lrs: tuple[float, ...] = ()
    """Run each row with each of these learning rates; without, each has its own, or the reference rule's."""
    seeds: tuple[int, ...] = (0,)
    """Of the order of the stream and of the adaptation; the corrupted images are the same for all."""
    images: int | None = None
    """Images of each corruption; all by default."""
    batch_size: int | None = None
    """Of every scenario but batch1; by default the scenario's own, 64."""
    preset: str | None = None
    """Of the rows: recommended, or thresholds of methods by paper or official (see polytta.adapt)."""
    precision: str = "fp32"
    """Of the arithmetic: fp32, tf32 or bf16."""
    normalisation: str = "correct"
    """Of ImageNet models: correct, or sar2023 as in published code."""
    set: tuple[str, ...] = ()
    """Options of polytta.adapt for every row, as OPTION=VALUE: aggregate=evidence, optimizer=my_optim:Lion, lr_span=4,
    lenses=unchanged,my_lenses:posterize. They win over a row's own; VALUE is JSON, a list with commas, or a word."""
    define: tyro.conf.Suppress[dict[str, dict[str, Any]]] = field(default_factory=dict)
    """Rows of one's own, in a file only: a label, and under it options of polytta.adapt."""

    def rows(self) -> dict[str, RowSettings]:
        """All rows, with the axes that belong to them multiplied out."""
        known = {**VARIANTS, **self.define}
        unknown = [name for name in self.variants if name not in known]
        if unknown:
            raise ConfigError(f"variants: got {unknown[0]!r}; allowed are {', '.join(known)}.")
        rows: dict[str, RowSettings] = {name: known[name] for name in self.variants}
        for method in self.methods:
            if not self.diversities:
                rows[method] = {"method": method, "particles": 1}
            for diversity in self.diversities:
                label = f"{method}_{'naive' if diversity == 'none' else diversity}"
                rows[label] = {"method": method, "diversity": diversity}
        for_all = {name: value for name in _FOR_ALL_ROWS if (value := getattr(self, name)) != OPTIONS[name]}
        chosen = read_options("set", self.set)
        rows = {label: {**for_all, **row, **chosen} for label, row in rows.items()}
        rows = dict(_over(rows, "particles", self.particles))
        return dict(_over(rows, "lr", self.lrs))

    def cells(self) -> list[Cell]:
        """Every cell once, in a fixed order."""
        self._check()
        rows = {label: checked(label, row) for label, row in self.rows().items()}
        found: dict[str, Cell] = {}
        for model, dataset, scenario in product(self.models, self.datasets, self.scenarios):
            name, weights = split_path(model)
            data, data_path = split_dataset(dataset)
            for stream in self._streams(data, data_path, scenario):
                for (label, settings), seed in product(rows.items(), self.seeds):
                    cell = Cell(
                        model=name,
                        dataset=data,
                        variant=label,
                        seed=seed,
                        images=self.images,
                        normalisation=self.normalisation,
                        settings=settings,
                        weights_path=weights,
                        data_path=data_path,
                        **stream,
                    )
                    found.setdefault(canonical_json(cell.to_dict()), cell)
        return list(found.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, every row spelt out."""
        return {**listed(asdict(self)), "rows": listed(self.rows())}

    def places(self) -> dict[str, str]:
        """Where datasets of one's own lie, by name."""
        split = map(split_dataset, self.datasets)
        return {name: str(Path(path).resolve()) for name, path in split if path is not None}

    def _streams(self, dataset: str, path: str | None, scenario: str) -> Iterator[dict[str, Any]]:
        own = SCENARIOS[scenario]().batch_size
        stream = {"scenario": scenario, "batch_size": own if scenario == "batch1" else self.batch_size or own}
        default = default_corruptions(dataset, path)
        # Of published photographs nobody made corruptions, and nobody asks for them.
        wanted = default if dataset in PLAIN else self.corruptions or default
        corrupted = tuple(name for name in wanted if name != CLEAN)
        if CLEAN in wanted:
            yield {**stream, "corruption": None, "severity": None}
        for severity in self.severities if corrupted else ():
            if scenario in POOLED:
                yield {**stream, "corruption": corrupted, "severity": severity}
            else:
                yield from ({**stream, "corruption": name, "severity": severity} for name in corrupted)

    def _check(self) -> None:
        for axis in ("models", "datasets", "severities", "scenarios", "seeds"):
            if not getattr(self, axis):
                raise ConfigError(f"{axis}: got none; allowed is at least one.")
        if not self.variants and not self.methods:
            raise ConfigError("variants: got none, and no methods; allowed is at least one row.")
        for axis, allowed in (
            ("corruptions", (*CORRUPTIONS, CLEAN)),
            ("severities", SEVERITIES),
            ("scenarios", tuple(SCENARIOS)),
        ):
            wrong = [value for value in getattr(self, axis) if value not in allowed]
            if wrong:
                raise ConfigError(f"{axis}: got {wrong[0]!r}; allowed are {', '.join(map(str, allowed))}.")
        pooled = [name for name in self.scenarios if name in POOLED]
        if CLEAN in self.corruptions and pooled:
            raise ConfigError(f"corruptions: got {CLEAN!r} for {pooled[0]}; allowed is a stream of corruptions alone.")
        for axis, split in (("models", split_path), ("datasets", split_dataset)):
            names = [split(value)[0] for value in dict.fromkeys(getattr(self, axis))]
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise ConfigError(f"{axis}: got {twice[0]!r} with more than one file; allowed is one.")
        for name, value in (("images", self.images), ("batch_size", self.batch_size)):
            if value is not None and value < 1:
                raise ConfigError(f"{name}: got {value}; allowed is at least 1.")
        if min(self.seeds) < 0:
            raise ConfigError(f"seeds: got {min(self.seeds)}; allowed are whole numbers from 0.")


def _over(rows: dict[str, RowSettings], option: str, values: tuple[Any, ...]) -> Iterator[tuple[str, RowSettings]]:
    """Each row once for each value of an option; the label says which where there are several."""
    for label, row in rows.items():
        single = row.get("particles") == 1
        # The recommended population finds its own number of particles and rates.
        recommended = "pace" in row or not row.keys() & set(COMPOSING)
        unmoved = part_name(row.get("method")) in _UNMOVED
        if not values or recommended or (option == "particles" and single) or (option == "lr" and unmoved):
            yield label, row
            continue
        for value in values:
            changed = {**row, option: value}
            optimizer = changed.get("optimizer")
            if option == "particles" and isinstance(optimizer, list | tuple):
                changed["optimizer"] = [optimizer[number % len(optimizer)] for number in range(value)]
            yield f"{label} {option}={value:g}" if len(values) > 1 else label, changed
