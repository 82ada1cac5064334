"""fig:particles: how many particles it takes. The paper prints a plot and no numbers."""

from dataclasses import dataclass

import numpy as np

from polytta.lab.pages.charts import Axis, Series, lines_svg
from polytta.lab.pages.elements import Plot
from polytta.lab.pages.stat import stat_cell
from polytta.lab.pages.tables import Table, TableCell, TableRow
from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.recipe import Reproduction, ResultTable, RunGrid
from polytta.lab.reproduce.tables import TableBlock, accuracy_stat, grad_rows

NUMBERS = (1, 2, 3, 4, 5, 7)
QUICK_NUMBERS = (1, 3)
CLAIM = "Published: accuracy rises from 1 to 3 particles and little beyond (a plot without numbers)."


@dataclass(frozen=True)
class ParticleNumbers:
    """Accuracy of Grad by number of particles."""

    name: str = "fig:particles"
    shows: str = "number of particles (1 to 7) of Grad, Gaussian noise, batch size 1, ViT"
    needs: str = "ImageNet-C (Gaussian noise); weights of ViT-B/16"

    def images(self, place: Place) -> int:
        """Images to adapt to in all."""
        return _block(place).images(place)

    def run(self, place: Place, run_grid: RunGrid) -> Reproduction:
        """One grid, a row per number."""
        numbers = _numbers(place)
        records = run_grid(_block(place).grid(place))
        stats = [accuracy_stat([r for r in records if r.particle_count == number]) for number in numbers]
        speeds = [np.mean([r.times.images_per_second for r in records if r.particle_count == n]) for n in numbers]
        best = max(stat.mean for stat in stats)
        rows = (
            TableRow("accuracy", tuple(stat_cell(stat, best=stat.mean == best) for stat in stats)),
            TableRow("images/s", tuple(TableCell(f"{speed:.1f}") for speed in speeds)),
        )
        header = ("Particles", *map(str, numbers))
        gain = stats[numbers.index(3)].mean - stats[0].mean
        rest = stats[-1].mean - stats[numbers.index(3)].mean
        remarks = (CLAIM, f"Measured: {gain:+.1f} points from 1 to 3, {rest:+.1f} from 3 to {numbers[-1]}.")
        line = Series("Grad", 7, np.array(numbers, np.float64), np.array([stat.mean for stat in stats]))
        svg = lines_svg(
            [line],
            Axis("particles", tuple(map(float, range(1, numbers[-1] + 1)))),
            Axis.over("accuracy", line.y.tolist(), " %"),
            "Accuracy against the number of particles",
        )
        table = ResultTable("Gaussian noise, severity 5", Table(header, rows), remarks)
        return Reproduction((table,), (Plot("Number of particles", svg, "Mean over seeds."),))


def _numbers(place: Place) -> tuple[int, ...]:
    return QUICK_NUMBERS if place.quick else NUMBERS


def _block(place: Place) -> TableBlock:
    grad = grad_rows(place).get("grad", {"method": "deyo", "diversity": "grad"})
    define = {f"K={number}": {**grad, "particles": number} for number in _numbers(place)}
    rows = {name: name for name in define}
    return TableBlock("Particles", "ViTBase-LN", "batch1", corruptions=("gaussian_noise",), rows=rows, define=define)


RECIPE = ParticleNumbers()
