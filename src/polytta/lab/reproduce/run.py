"""Runs a recipe into a folder: its records, which a second run finds, and measured beside published."""

import os
from dataclasses import replace
from pathlib import Path

from polytta.data.datasets.roots import ENVIRONMENT
from polytta.errors import StateError
from polytta.lab.bench import Grid, Options, benchmark
from polytta.lab.bench.plan import plan_cell
from polytta.lab.bench.record import Record
from polytta.lab.pages.elements import figures, note
from polytta.lab.pages.page import Section, render_page
from polytta.lab.pages.tables import as_html, as_markdown, as_text
from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.published import origin
from polytta.lab.reproduce.recipe import Recipe, Reproduction, ResultTable
from polytta.system.files import write_whole

PAGE, MARKDOWN = "reproduced.html", "reproduced.md"


def reproduce(recipe: Recipe, place: Place, folder: Path, options: Options) -> Reproduction:
    """Runs a recipe and writes its page and its tables."""
    if place.folder is not None:
        # Models that are built by a function of their own look for their weights here, in every process.
        os.environ[ENVIRONMENT] = str(place.folder)

    def run_grid(grid: Grid, *, alone: bool = False) -> list[Record]:
        one_by_one = replace(options, jobs=1, execution=replace(options.execution, fold="never"))
        summary = benchmark(grid, folder, one_by_one if alone else options)
        if summary.failures:
            first = summary.failures[0]
            raise StateError(
                f"{recipe.name}: got {len(summary.failures)} cells that failed, the first of them {first.cell.words} "
                f"({first.sentence.rstrip('.')}); allowed is none."
            )
        wanted = {plan_cell(cell).key for cell in grid.cells()}
        return [record for record in summary.records if record.key in wanted]

    reproduced = recipe.run(place, run_grid)
    write_whole(folder / PAGE, reproduction_page(recipe, place, reproduced).encode())
    write_whole(folder / MARKDOWN, reproduction_markdown(recipe, place, reproduced).encode())
    return reproduced


def result_text(result: ResultTable) -> str:
    """One table for the terminal."""
    return "\n".join((result.title, "", as_text(result.table), *(("", *result.remarks) if result.remarks else ())))


def reproduction_markdown(recipe: Recipe, place: Place, reproduced: Reproduction) -> str:
    """All tables as Markdown."""
    parts = [f"# {recipe.name}", f"{recipe.shows}.", f"Measured on {place.description}. Published: {origin()}."]
    for result in reproduced.tables:
        remarks = "\n".join(f"- {remark}" for remark in result.remarks)
        parts += [f"## {result.title}", as_markdown(result.table), remarks]
    return "\n\n".join(filter(None, parts)) + "\n"


def reproduction_page(recipe: Recipe, place: Place, reproduced: Reproduction) -> str:
    """All tables and plots as one HTML page."""
    sections = [
        Section(f"part-{number}", result.title, (as_html(result.table), *map(note, result.remarks)))
        for number, result in enumerate(reproduced.tables)
    ]
    if reproduced.plots:
        sections.append(Section("plots", "Plots", (figures(reproduced.plots),)))
    lead = f"{recipe.shows}. Measured on {place.description}. Published: {origin()}."
    return render_page(f"Reproduced: {recipe.name}", lead[0].upper() + lead[1:], sections)
