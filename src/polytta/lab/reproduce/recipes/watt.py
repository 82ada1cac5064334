"""tab:watt: diversified WATT on CLIP. Published figures alone: the methods are there, a recipe for them is not."""

from dataclasses import dataclass, replace

from polytta.data.corruption_names import COMMON_CORRUPTIONS
from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.published import published_rows
from polytta.lab.reproduce.published_comparison import AVERAGE, comparison_table
from polytta.lab.reproduce.recipe import Reproduction, RunGrid

NOT_YET = "Nothing was run: polytta has the methods, and no recipe that runs them yet."


@dataclass(frozen=True)
class Watt:
    """Says what it waits for."""

    name: str = "tab:watt"
    shows: str = "WATT, alone and diversified, on CIFAR-100-C with CLIP (published figures alone)"
    needs: str = "CIFAR-100-C; weights of OpenAI CLIP ViT-B/32"

    def images(self, place: Place) -> int:
        """None yet."""
        return 0

    def run(self, place: Place, run_grid: RunGrid) -> Reproduction:
        """What the paper prints."""
        columns = (*COMMON_CORRUPTIONS, AVERAGE)
        table = comparison_table("CIFAR-100-C", published_rows(self.name), columns, {}, place, ranked_by=None)
        return Reproduction((replace(table, remarks=(NOT_YET, *table.remarks)),))


RECIPE = Watt()
