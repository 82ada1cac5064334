"""fig:interpolation: the plane through three adapted solutions. The paper prints a picture and no numbers."""

from dataclasses import dataclass

from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.recipe import Reproduction, ResultTable, RunGrid
from polytta.lab.reproduce.recipes.multiseed import single_deyo
from polytta.lab.study.landscape import as_table, plots, survey
from polytta.lab.study.solutions import find_solutions

SEEDS = 3
CLAIM = (
    "Published: a picture of the test loss over the plane through three optima, without numbers; which method, "
    "corruption and model it shows is not said. Here: three seeds of DeYO on zoom blur."
)


@dataclass(frozen=True)
class Interpolation:
    """The study of the landscape."""

    name: str = "fig:interpolation"
    shows: str = "entropy, test loss and accuracy on the plane through three adapted solutions"
    needs: str = "ImageNet-C (zoom blur); weights of ViT-B/16"

    def images(self, place: Place) -> int:
        """Images to adapt to in all; the survey comes on top."""
        return SEEDS * (place.images or 50_000)

    def run(self, place: Place, run_grid: RunGrid) -> Reproduction:
        """Runs the study."""
        found = find_solutions(single_deyo(place), range(SEEDS), judged_on=4 if place.quick else 64)
        plane = survey(found, resolution=3 if place.quick else 15)
        return Reproduction((ResultTable("Corners of the plane", as_table(plane), (CLAIM,)),), plots(plane))


RECIPE = Interpolation()
