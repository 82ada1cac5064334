"""One self-contained HTML page: a table, plots, pictures and the settings, with nothing to fetch."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

import numpy as np
from numpy.typing import NDArray
from PIL import Image


@dataclass(frozen=True)
class Table:
    """Text cells; the first column names the row."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Plot:
    """An SVG element under a heading."""

    title: str
    svg: str
    note: str


@dataclass(frozen=True)
class Verdict:
    """What one method said about a picture."""

    method: str
    answer: str
    right: bool


@dataclass(frozen=True, eq=False)
class Example:
    """A picture before and after its corruption, and what was made of it."""

    label: str
    clean: NDArray[np.uint8]
    corrupted: NDArray[np.uint8]
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, eq=False)
class Page:
    """All a page shows, in order."""

    title: str
    lead: str
    table: Table
    table_note: str
    plots: tuple[Plot, ...]
    examples: Mapping[str, Sequence[Example]]
    examples_note: str
    facts: Mapping[str, str]


def render(page: Page) -> str:
    """The page as one HTML document."""
    template = Template(files("polytta.lab.pages").joinpath("page.html").read_text("utf-8"))
    return template.substitute(
        style=style(),
        title=escape(page.title),
        lead=escape(page.lead),
        table=_table(page.table),
        table_note=escape(page.table_note),
        plots="\n".join(map(plot_figure, page.plots)),
        examples="\n".join(_examples(name, examples) for name, examples in page.examples.items()),
        examples_note=escape(page.examples_note),
        facts="\n".join(f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>" for name, fact in page.facts.items()),
    )


def style() -> str:
    """The look all pages share: light, dark and in print."""
    return files("polytta.lab.pages").joinpath("style.css").read_text("utf-8")


def png_uri(image: NDArray[np.uint8]) -> str:
    """An image as a data URI."""
    stored = io.BytesIO()
    Image.fromarray(image).save(stored, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stored.getvalue()).decode("ascii")


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.header)
    body = "\n".join(
        f'<tr><th scope="row"><i class="key s{number}"></i>{escape(name)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for number, (name, *cells) in enumerate(table.rows)
    )
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def plot_figure(plot: Plot) -> str:
    """A plot with its heading and its note."""
    return f"<figure><h3>{escape(plot.title)}</h3>\n{plot.svg}\n<figcaption>{escape(plot.note)}</figcaption></figure>"


def _examples(name: str, examples: Sequence[Example]) -> str:
    cards = "\n".join(map(_example, examples))
    return f'<h3>{escape(name)}</h3>\n<div class="examples">\n{cards}\n</div>'


def _example(example: Example) -> str:
    said = "".join(
        f'<li class="{"right" if verdict.right else "wrong"}"><span>{escape(verdict.method)}</span> '
        f"{escape(verdict.answer)} {'✓' if verdict.right else '✗'}</li>"
        for verdict in example.verdicts
    )
    label = escape(example.label)
    return (
        f'<article><div class="pair"><img src="{png_uri(example.clean)}" alt="{label}, clean" width="32" height="32">'
        f'<img src="{png_uri(example.corrupted)}" alt="{label}, corrupted" width="32" height="32"></div>'
        f"<b>{label}</b><ul>{said}</ul></article>"
    )
