"""tab:imagenet-c-mix-shift: all corruptions shuffled into one stream."""

from dataclasses import dataclass

from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.published import published_rows
from polytta.lab.reproduce.published_comparison import comparison_table
from polytta.lab.reproduce.recipe import Reproduction, RunGrid
from polytta.lab.reproduce.tables import TableBlock, accuracy_stat, with_notes

BLOCKS = (TableBlock("Mix Shifts", "ResNet-50-GN", "mixed"), TableBlock("Mix Shifts", "ViTBase-LN", "mixed"))
MEASURES = ("accuracy", "top5")


@dataclass(frozen=True)
class MixShift:
    """Top-1 and top-5 accuracy, one stream per model."""

    name: str = "tab:imagenet-c-mix-shift"
    shows: str = "all 15 corruptions shuffled into one stream, batches of 64, top-1 and top-5, two models"
    needs: str = "ImageNet-C; weights of ResNet-50-GN and ViT-B/16"

    def images(self, place: Place) -> int:
        """Images to adapt to in all."""
        return sum(block.images(place) for block in BLOCKS)

    def run(self, place: Place, run_grid: RunGrid) -> Reproduction:
        """One grid per model."""
        tables = []
        for block in BLOCKS:
            records = run_grid(block.grid(place))
            rows = published_rows(self.name, block.block, block.backbone)
            measured = {
                (row.method, measure): accuracy_stat(
                    [r for r in records if r.cell.variant == block.rows[row.method]], measure
                )
                for row in rows
                for measure in MEASURES
            }
            tables.append(comparison_table(block.title, rows, MEASURES, measured, place, ranked_by="accuracy"))
        return Reproduction(with_notes(self.name, tables))


RECIPE = MixShift()
