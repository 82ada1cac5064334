"""tab:extended_shifts: shifts that are no corruptions, a column per dataset, each with a model of its own."""

from dataclasses import dataclass, replace

from polytta.data.corruption_names import EXTRA_CORRUPTIONS
from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.published import published_rows
from polytta.lab.reproduce.published_comparison import comparison_table
from polytta.lab.reproduce.recipe import Reproduction, RunGrid
from polytta.lab.reproduce.tables import METHODS, TableBlock, accuracy_stat, with_notes

ROWS = {name: row for name, row in METHODS.items() if name != "No adapt"}
# {column: (model, scenario, dataset)}; with bundled data each column is one of the extra corruptions instead.
COLUMNS = {
    "ColoredMNIST": ("ColoredMNIST ResNet-18", "mild", "colored-mnist"),
    "Waterbirds": ("Waterbirds ResNet-50", "mild", "waterbirds"),
    "ImageNet-R": ("ResNet-50-GN", "batch1", "imagenet-r"),
    "VisDA-2021": ("ResNet-50-GN", "batch1", "visda2021"),
}


@dataclass(frozen=True)
class ExtendedShifts:
    """Accuracy per dataset."""

    name: str = "tab:extended_shifts"
    shows: str = (
        "ColoredMNIST and Waterbirds (BatchNorm, batches of 64), ImageNet-R and VisDA-2021 (GroupNorm, batch 1)"
    )
    needs: str = "the four datasets; weights of ResNet-50-GN; own ResNet-18 and ResNet-50 for the first two"

    def images(self, place: Place) -> int:
        """Images to adapt to in all."""
        return sum(block.images(place) for block in _blocks().values())

    def run(self, place: Place, run_grid: RunGrid) -> Reproduction:
        """One grid per column."""
        rows = published_rows(self.name)
        measured = {}
        for column, block in _blocks().items():
            records = run_grid(block.grid(place))
            for row in rows:
                own = [r for r in records if r.cell.variant == ROWS[row.method]]
                measured[row.method, column] = accuracy_stat(own)
        table = comparison_table("Non-corruption shifts", rows, tuple(COLUMNS), measured, place, ranked_by=None)
        remarks = list(table.remarks)
        if place.is_bundled:
            columns = ", ".join(f"{column} is {name}" for column, name in zip(COLUMNS, EXTRA_CORRUPTIONS, strict=True))
            remarks.append(f"Stand-ins: {columns}, with the bundled BatchNorm or GroupNorm model.")
        else:
            remarks.append(
                "ColoredMNIST and Waterbirds: measured is accuracy over all images; published is, it seems, the "
                "mean of the accuracies of the four groups."
            )
        return Reproduction(with_notes(self.name, [replace(table, remarks=tuple(remarks))]))


def _blocks() -> dict[str, TableBlock]:
    return {
        column: TableBlock(
            "Non-corruption shifts", None, scenario, model=model, dataset=dataset, corruptions=(stand_in,), rows=ROWS
        )
        for (column, (model, scenario, dataset)), stand_in in zip(COLUMNS.items(), EXTRA_CORRUPTIONS, strict=True)
    }


RECIPE = ExtendedShifts()
