"""tab:runtime: passes and time per image. Published are totals over 50,000 images; per image they compare."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from polytta.lab.bench.record import Record
from polytta.lab.pages.stat import Stat
from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.published import PublishedFigure, PublishedRow, published_rows
from polytta.lab.reproduce.published_comparison import comparison_table
from polytta.lab.reproduce.recipe import Reproduction, RunGrid
from polytta.lab.reproduce.tables import BASELINES, TableBlock

PUBLISHED_IMAGES = 50_000
ROWS = {**BASELINES, "Grad": "grad"}
BLOCK = TableBlock("Runtime", "ResNet-50-BN", "mild", corruptions=("gaussian_noise",), rows=ROWS)
COLUMNS = ("forward/image", "backward/image", "ms/image")


@dataclass(frozen=True)
class Runtime:
    """What methods cost."""

    name: str = "tab:runtime"
    shows: str = "forward and backward passes and time per image, Gaussian noise, ResNet-50-BN, batches of 64"
    needs: str = "ImageNet-C (Gaussian noise); weights of ResNet-50-BN (torchvision V1)"

    def images(self, place: Place) -> int:
        """Images to adapt to in all."""
        return BLOCK.images(place)

    def run(self, place: Place, run_grid: RunGrid) -> Reproduction:
        """One grid; seeds are repetitions."""
        records = run_grid(BLOCK.grid(place), alone=True)
        measured = {}
        for method, variant in ROWS.items():
            own = [record for record in records if record.cell.variant == variant]
            for column, cost in _COSTS.items():
                measured[method, column] = Stat.of([cost(record) for record in own])
        table = comparison_table("Cost per image", _published(), COLUMNS, measured, place, digits=2, ranked_by=None)
        remarks = (
            *table.remarks,
            "Passes of Grad are over all three particles. Its fast solver, the default, needs one pass more over "
            "the images kept, where the paper differentiates twice.",
            f"Published times: one A6000. Measured: {records[0].environment.get('device', 'unknown device')}.",
            f"Grad takes {_ratio(measured):.2f} times as long as DeYO here; published 2.62.",
        )
        return Reproduction((replace(table, remarks=remarks),))


_COSTS: dict[str, Callable[[Record], float]] = {
    "forward/image": lambda record: record.results.forward_samples / record.results.images,
    "backward/image": lambda record: record.results.backward_samples / record.results.images,
    "ms/image": lambda record: 1000 / record.times.images_per_second,
}


def _published() -> list[PublishedRow]:
    """Per image; the particles of Grad as one row."""
    totals: dict[str, dict[str, float]] = {}
    for row in published_rows("tab:runtime"):
        method = "Grad" if row.method.startswith("Grad") else row.method
        own = totals.setdefault(method, {})
        for column, figure in row.figures.items():
            own[column] = own.get(column, 0.0) + figure.value
    scale = {"forward": ("forward/image", 1.0), "backward": ("backward/image", 1.0), "seconds": ("ms/image", 1000.0)}
    return [
        PublishedRow(
            "Runtime",
            "ResNet-50-BN",
            method,
            {scale[name][0]: PublishedFigure(scale[name][1] * total / PUBLISHED_IMAGES) for name, total in own.items()},
        )
        for method, own in totals.items()
    ]


def _ratio(measured: dict[tuple[str, str], Stat]) -> float:
    return measured["Grad", "ms/image"].mean / measured["DeYO", "ms/image"].mean


RECIPE = Runtime()
