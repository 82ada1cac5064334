"""Runs a recipe into a folder: its records, which a second run finds, and measured beside published."""

import os
from dataclasses import replace
from pathlib import Path

from polytta.data.datasets.roots import ENVIRONMENT
from polytta.errors import StateError
from polytta.lab.bench.benchmark import Options, benchmark
from polytta.lab.bench.grid import Grid
from polytta.lab.bench.plan import plan_cell
from polytta.lab.bench.record import Record
from polytta.lab.pages.document import Section, figures, note, render_document
from polytta.lab.pages.tables import as_html, as_markdown, as_text
from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.published import origin
from polytta.lab.reproduce.recipe import Outcome, Part, Recipe
from polytta.system.files import write_whole

PAGE, MARKDOWN = "reproduced.html", "reproduced.md"


def reproduce(recipe: Recipe, place: Place, folder: Path, options: Options) -> Outcome:
    """Runs a recipe and writes its page and its tables."""
    if place.folder is not None:
        # Models that are built by a function of their own look for their weights here, in every process.
        os.environ[ENVIRONMENT] = str(place.folder)

    def run_grid(grid: Grid, *, alone: bool = False) -> list[Record]:
        how = replace(options, jobs=1, how=replace(options.how, fold="never")) if alone else options
        summary = benchmark(grid, folder, how)
        if summary.failures:
            first = summary.failures[0]
            raise StateError(
                f"{len(summary.failures)} cells failed, the first of them {first.cell.words}: {first.sentence}"
            )
        wanted = {plan_cell(cell).key for cell in grid.cells()}
        return [record for record in summary.records if record.key in wanted]

    outcome = recipe.run(place, run_grid)
    write_whole(folder / PAGE, as_page(recipe, place, outcome).encode())
    write_whole(folder / MARKDOWN, as_document(recipe, place, outcome).encode())
    return outcome


def in_words(part: Part) -> str:
    """One table for the terminal."""
    return "\n".join((part.title, "", as_text(part.matrix), *(("", *part.remarks) if part.remarks else ())))


def as_document(recipe: Recipe, place: Place, outcome: Outcome) -> str:
    """All tables as Markdown."""
    parts = [f"# {recipe.name}", f"{recipe.shows}.", f"Measured on {place.words}. Published: {origin()}."]
    for part in outcome.parts:
        parts += [f"## {part.title}", as_markdown(part.matrix), "\n".join(f"- {remark}" for remark in part.remarks)]
    return "\n\n".join(filter(None, parts)) + "\n"


def as_page(recipe: Recipe, place: Place, outcome: Outcome) -> str:
    """All tables and plots as one HTML page."""
    sections = [
        Section(f"part-{number}", part.title, (as_html(part.matrix), *map(note, part.remarks)))
        for number, part in enumerate(outcome.parts)
    ]
    if outcome.plots:
        sections.append(Section("plots", "Plots", (figures(outcome.plots),)))
    lead = f"{recipe.shows}. Measured on {place.words}. Published: {origin()}."
    return render_document(f"Reproduced: {recipe.name}", lead[0].upper() + lead[1:], sections)
