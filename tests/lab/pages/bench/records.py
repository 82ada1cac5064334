"""Records of cells that really ran, on a few bundled images."""

from pathlib import Path

from tests.lab.bench.cells import run_cell

from polytta.lab.bench import Grid, Record

ROWS = ("source", "tent", "deyo", "naive", "svgd", "grad")


def write_records(
    folder: Path,
    rows: tuple[str, ...] = ROWS,
    corruptions: tuple[str, ...] = ("impulse_noise", "frost"),
    seeds: tuple[int, ...] = (0, 1),
    images: int = 6,
    scenario: str = "batch1",
    model: str = "bundled/cifar10_resnet_gn",
) -> list[Record]:
    grid = Grid(
        models=(model,),
        corruptions=corruptions,
        scenarios=(scenario,),
        variants=rows,
        seeds=seeds,
        images=images,
        batch_size=4,
        lrs=(1e-3,),
        preset="official",
    )
    records = [run_cell(cell) for cell in grid.cells()]
    for record in records:
        record.write(folder / "cells")
    return records
