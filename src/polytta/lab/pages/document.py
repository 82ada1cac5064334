"""A self-contained HTML page of any number of sections, in the look of the demo's report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

import numpy as np
from numpy.typing import NDArray

from polytta.lab.pages.page import Plot, plot_figure, png_uri, style


@dataclass(frozen=True)
class Section:
    """A heading with an anchor, and the HTML below it."""

    anchor: str
    heading: str
    parts: tuple[str, ...]


def render_document(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The page as one HTML document."""
    template = Template(files("polytta.lab.pages").joinpath("document.html").read_text("utf-8"))
    return template.substitute(
        style=style(),
        title=escape(title),
        lead=escape(lead),
        contents="".join(f'<li><a href="#{part.anchor}">{escape(part.heading)}</a></li>' for part in sections),
        sections="\n".join(map(_section, sections)),
    )


def note(text: str) -> str:
    """A remark."""
    return f'<p class="note">{escape(text)}</p>'


def figures(plots: Sequence[Plot], *, small: bool = False) -> str:
    """Plots side by side."""
    kind = "plots small" if small else "plots"
    return f'<div class="{kind}">\n' + "\n".join(map(plot_figure, plots)) + "\n</div>"


def pictures(images: Mapping[str, NDArray[np.uint8]]) -> str:
    """Named images in a row."""
    parts = []
    for name, image in images.items():
        height, width = image.shape[:2]
        parts.append(
            f'<div><img src="{png_uri(image)}" alt="{escape(name)}" width="{width}" height="{height}">'
            f"{escape(name)}</div>"
        )
    return '<div class="strip">\n' + "\n".join(parts) + "\n</div>"


def facts(named: Mapping[str, str]) -> str:
    """Names and what they stand for."""
    return "<dl>\n" + "\n".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in named.items()) + "\n</dl>"


def _section(section: Section) -> str:
    inner = "\n".join(section.parts)
    return f'<section id="{section.anchor}">\n<h2>{escape(section.heading)}</h2>\n{inner}\n</section>'
