"""Recipes that are a grid: the paper's accuracy tables, block by block."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from polytta.data.corruption_names import COMMON_CORRUPTIONS
from polytta.lab.bench.grid import POOLED, Grid
from polytta.lab.bench.record import Record
from polytta.lab.pages.stat import Stat
from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.published import published_notes, published_rows
from polytta.lab.reproduce.published_comparison import AVERAGE, comparison_table
from polytta.lab.reproduce.recipe import Reproduction, ResultTable, RunGrid

# {method in the paper's tables: row of the grid}
BASELINES = {"No adapt": "source", "Tent": "tent", "SAR": "sar", "DeYO": "deyo"}
METHODS = {**BASELINES, "Naive": "naive", "SVGD": "svgd", "KL": "kl", "Grad": "grad"}
# VisDA-2021 is a mixture whose size depends on what of it one has; it is not counted.
IMAGES = {
    "imagenet-c": 50_000,
    "cifar10-c": 10_000,
    "cifar100-c": 10_000,
    "colored-mnist": 20_000,
    "waterbirds": 5_794,
    "imagenet-r": 30_000,
}
# Of ImageNet's thousand classes, 100 draws each, whatever the number of images.
LABEL_SHIFT_IMAGES = {**IMAGES, "imagenet-c": 100_000}


@dataclass(frozen=True)
class TableBlock:
    """ResultTable of a table: one model under one scenario.

    Attributes:
        block: its name in the published figures.
        backbone: the model's name there; None where the table names none.
        scenario: name of the scenario.
        model: the model's name in ``places``, where it is not the backbone.
        dataset: of the full run.
        corruptions: its columns.
        severity: of the corruptions.
        rows: {method in the table: row of the grid}.
        define: rows of its own: arguments of ``polytta.adapt``.
        define_at: the same by place; ``grad_rows`` unless a table has others.
        not_run: {method in the table: why there is nothing to run}.
        batch_size: on the paper's data; None for the scenario's own.
        bundled_images: of each corruption on bundled data, where methods take longer than others'.
    """

    block: str
    backbone: str | None
    scenario: str
    model: str | None = None
    dataset: str = "imagenet-c"
    corruptions: tuple[str, ...] = COMMON_CORRUPTIONS
    severity: int = 5
    rows: Mapping[str, str] = field(default_factory=lambda: METHODS)
    define: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    define_at: Callable[[Place], Mapping[str, Mapping[str, Any]]] = lambda place: grad_rows(place)
    not_run: Mapping[str, str] = field(default_factory=dict)
    batch_size: int | None = None
    bundled_images: int | None = None

    @property
    def title(self) -> str:
        """For its table."""
        return f"{self.block}, {self.backbone}"

    def columns(self, place: Place) -> tuple[str, ...]:
        """Corruptions that are run."""
        return self.corruptions[: 2 if self.scenario in POOLED else 1] if place.quick else self.corruptions

    def grid(self, place: Place) -> Grid:
        """What to run."""
        rate = place.lr(self.scenario)
        model = self.model or self.backbone
        assert model is not None
        return Grid(
            models=(place.model(model),),
            datasets=(place.dataset(self.dataset),),
            corruptions=self.columns(place),
            severities=(self.severity,),
            scenarios=(self.scenario,),
            variants=tuple(self.rows.values()),
            seeds=place.seeds,
            images=self._images(place),
            batch_size=place.batch_size or self.batch_size,
            lrs=() if rate is None else (rate,),
            normalisation=place.normalisation(model),
            define={name: dict(row) for name, row in {**self.define_at(place), **self.define}.items()},
        )

    def images(self, place: Place) -> int:
        """Images to adapt to in all."""
        streams = len(self.columns(place)) * len(self.rows) * len(place.seeds)
        sizes = LABEL_SHIFT_IMAGES if self.scenario == "label_shift" else IMAGES
        return streams * (self._images(place) or sizes.get(self.dataset, 0))

    def _images(self, place: Place) -> int | None:
        """Of each corruption; None for all."""
        fewer = place.is_bundled and not place.quick and self.bundled_images is not None
        return self.bundled_images if fewer else place.images


@dataclass(frozen=True)
class TableRecipe:
    """A table of accuracies, corruptions as columns."""

    name: str
    shows: str
    needs: str
    blocks: tuple[TableBlock, ...]

    def images(self, place: Place) -> int:
        """Images to adapt to in all."""
        return sum(block.images(place) for block in self.blocks)

    def run(self, place: Place, run_grid: RunGrid) -> Reproduction:
        """Runs block by block."""
        tables = [self._table(block, place, run_grid(block.grid(place))) for block in self.blocks]
        return Reproduction(with_notes(self.name, tables))

    def _table(self, block: TableBlock, place: Place, records: Sequence[Record]) -> ResultTable:
        columns = block.columns(place)
        rows = published_rows(self.name, block.block, block.backbone)
        measured = {}
        for row in rows:
            if row.method in block.not_run:
                continue
            own = [record for record in records if record.cell.variant == block.rows[row.method]]
            for column in columns:
                measured[row.method, column] = accuracy_stat([r for r in own if r.cell.corruption == column])
            per_seed = [accuracy_stat([r for r in own if r.cell.seed == seed]).mean for seed in place.seeds]
            measured[row.method, AVERAGE] = Stat.of(per_seed)
        if columns != block.corruptions:  # the published average is over all of them
            table = comparison_table(block.title, rows, columns, measured, place, ranked_by=columns[0])
        else:
            table = comparison_table(block.title, rows, (*columns, AVERAGE), measured, place)
        missing = (f"{method} was not run: {why}." for method, why in block.not_run.items())
        return replace(table, remarks=(*table.remarks, *missing))


def grad_rows(place: Place) -> dict[str, dict[str, Any]]:
    """Grad as the paper prints it on the paper's data; on small images that form is destructive, and ours is used."""
    if place.is_bundled:
        return {}
    return {"grad": {"method": "deyo", "diversity": {"name": "grad", "scale": "literal"}}}


def accuracy_stat(records: Sequence[Record], measure: str = "accuracy") -> Stat:
    """Mean and spread of a measure."""
    return Stat.of([float(getattr(record.results, measure)) for record in records])


def with_notes(name: str, tables: Sequence[ResultTable]) -> tuple[ResultTable, ...]:
    """The last one carries what is known to be wrong with the paper's text about the table of that name."""
    notes = tuple(f"About the paper: {note}" for note in published_notes(name))
    *others, last = tables
    return (*others, replace(last, remarks=(*last.remarks, *notes)))
