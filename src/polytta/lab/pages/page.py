"""One self-contained HTML page of any number of sections, with nothing to fetch."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template


@dataclass(frozen=True)
class Section:
    """A heading with an anchor, and the HTML below it."""

    anchor: str
    heading: str
    parts: tuple[str, ...]


def render_page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The page as one HTML document: light, dark and in print."""
    return Template(_resource("page.html")).substitute(
        style=_resource("style.css"),
        title=escape(title),
        lead=escape(lead),
        contents="".join(f'<li><a href="#{escape(part.anchor)}">{escape(part.heading)}</a></li>' for part in sections),
        sections="\n".join(map(_section, sections)),
    )


def _section(section: Section) -> str:
    inner = "\n".join(section.parts)
    return f'<section id="{escape(section.anchor)}">\n<h2>{escape(section.heading)}</h2>\n{inner}\n</section>'


def _resource(name: str) -> str:
    return files("polytta.lab.pages").joinpath(name).read_text("utf-8")
