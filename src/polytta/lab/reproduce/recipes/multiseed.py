"""tab:multiseed_deyo_b1: five seeds of DeYO that end equally sure and differently right."""

from dataclasses import dataclass, replace

from polytta.lab.bench.cell import Cell
from polytta.lab.bench.data import split_path
from polytta.lab.pages.stat import Stat
from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.published import published_rows
from polytta.lab.reproduce.published_comparison import comparison_table
from polytta.lab.reproduce.recipe import Reproduction, RunGrid
from polytta.lab.reproduce.tables import with_notes
from polytta.lab.study.solutions import find_solutions
from polytta.lab.study.underspecification import measure, verdict

SEEDS = 5
COLUMNS = ("final entropy", "accuracy", "distance to source", "mean pairwise distance")
BACKBONE, CORRUPTION, SCENARIO = "ViTBase-LN", "zoom_blur", "batch1"


@dataclass(frozen=True)
class Multiseed:
    """The study of underspecification beside the paper's first table."""

    name: str = "tab:multiseed_deyo_b1"
    shows: str = "five seeds of DeYO: final entropy, accuracy, distances; zoom blur, batch size 1, ViT"
    needs: str = "ImageNet-C (zoom blur); weights of ViT-B/16"

    def images(self, place: Place) -> int:
        """Images to adapt to in all."""
        return SEEDS * (place.images or 50_000)

    def run(self, place: Place, run_grid: RunGrid) -> Reproduction:
        """Runs the study; it keeps final parameters, which records do not hold."""
        study = measure(find_solutions(single_deyo(place), range(SEEDS), judged_on=8 if place.quick else 256))
        rows = published_rows(self.name)
        measured = {
            (f"DeYO seed {seed}", column): Stat.of([figures[column]])
            for seed, figures in study.figures.items()
            for column in COLUMNS
        }
        table = comparison_table("Zoom blur, severity 5", rows, COLUMNS, measured, place, digits=3, ranked_by=None)
        return Reproduction(with_notes(self.name, [replace(table, remarks=(*table.remarks, verdict(study)))]))


def single_deyo(place: Place) -> Cell:
    """DeYO with one particle, on the paper's example."""
    model, weights = split_path(place.model(BACKBONE))
    dataset, data = split_path(place.dataset("imagenet-c"))
    return Cell(
        model=model,
        dataset=dataset,
        corruption=CORRUPTION,
        severity=5,
        scenario=SCENARIO,
        batch_size=1,
        variant="deyo",
        images=place.images,
        normalisation=place.normalisation(BACKBONE),
        settings={"method": "deyo", "particles": 1, "lr": place.lr(SCENARIO)},
        weights_path=weights,
        data_path=data,
    )


RECIPE = Multiseed()
