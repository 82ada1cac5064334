"""fig:lambda: three forms of input-gradient diversity over a grid of weights. The paper prints a plot alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polytta.lab.pages.charts import Axis, Series, lines_svg
from polytta.lab.pages.elements import Plot
from polytta.lab.pages.stat import Stat, stat_cell
from polytta.lab.pages.tables import Table, TableRow
from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.recipe import Reproduction, ResultTable, RunGrid
from polytta.lab.reproduce.tables import TableBlock, accuracy_stat

FORMS = ("dot", "l2", "cosine")
WEIGHTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
QUICK_WEIGHTS = (0.1, 0.3)
CLAIM = "Published: dot is best for most weights, best at about 0.3, very large ones hurt (a plot without numbers)."


@dataclass(frozen=True)
class LambdaForms:
    """Accuracy by form and weight."""

    name: str = "fig:lambda"
    shows: str = "three forms of gradient diversity (dot, l2, cosine) x weight, zoom blur, batch size 1, ViT"
    needs: str = "ImageNet-C (zoom blur); weights of ViT-B/16"

    def images(self, place: Place) -> int:
        """Images to adapt to in all."""
        return _block(place).images(place)

    def run(self, place: Place, run_grid: RunGrid) -> Reproduction:
        """One grid, a row per form and weight."""
        weights = _weights(place)
        records = run_grid(_block(place).grid(place))
        stats = {
            (form, weight): accuracy_stat([r for r in records if r.cell.variant == _label(form, weight)])
            for form in FORMS
            for weight in weights
        }
        top = max(stat.mean for stat in stats.values())
        rows = []
        for form in FORMS:
            own = [stats[form, weight] for weight in weights]
            rows.append(TableRow(form, tuple(stat_cell(stat, best=stat.mean == top) for stat in own)))
        header = ("Accuracy at weight", *(f"{weight:g}" for weight in weights))
        scale = "a share of the loss gradient (the library's default)" if place.is_bundled else "as printed"
        ahead = sum(stats["dot", w].mean >= max(stats[form, w].mean for form in FORMS) for w in weights)
        best_weight = max(weights, key=lambda w: stats["dot", w].mean)
        remarks = (
            CLAIM,
            f"Measured: dot is best or level at {ahead} of {len(weights)} weights; its best weight is {best_weight:g}.",
            f"The weight scales the term {scale}.",
        )
        table = ResultTable("Zoom blur, severity 5", Table(header, tuple(rows)), remarks)
        return Reproduction((table,), (_plot(stats, weights),))


def _weights(place: Place) -> tuple[float, ...]:
    return QUICK_WEIGHTS if place.quick else WEIGHTS


def _label(form: str, weight: float) -> str:
    return f"{form} {weight:g}"


def _block(place: Place) -> TableBlock:
    define: dict[str, dict[str, Any]] = {}
    for form in FORMS:
        for weight in _weights(place):
            diversity = {"name": "grad", "form": form, "weight": weight}
            if not place.is_bundled:
                diversity["scale"] = "literal"
            define[_label(form, weight)] = {"method": "deyo", "diversity": diversity}
    return TableBlock(
        "Zoom blur", "ViTBase-LN", "batch1", corruptions=("zoom_blur",), rows={n: n for n in define}, define=define
    )


def _plot(stats: dict[tuple[str, float], Stat], weights: tuple[float, ...]) -> Plot:
    lines = [
        Series(form, 1 + i, np.array(weights), np.array([stats[form, w].mean for w in weights]))
        for i, form in enumerate(FORMS)
    ]
    x = Axis.logarithmic("weight", weights)
    y = Axis.over("accuracy", np.concatenate([line.y for line in lines]).tolist(), " %")
    svg = lines_svg(lines, x, y, "Accuracy against the weight of gradient diversity, per form")
    return Plot("Form and weight of gradient diversity", svg, "Mean over seeds.")


RECIPE = LambdaForms()
