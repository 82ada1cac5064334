"""What sections of a page are made of, besides tables: remarks, figures, pictures, and named facts."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray
from PIL import Image


@dataclass(frozen=True)
class Plot:
    """A chart under a heading."""

    title: str
    svg: str
    note: str


def note(text: str) -> str:
    """A remark."""
    return f'<p class="note">{escape(text)}</p>'


def figures(plots: Sequence[Plot], *, small: bool = False) -> str:
    """Plots side by side."""
    kind = "plots small" if small else "plots"
    return f'<div class="{kind}">\n' + "\n".join(map(_figure, plots)) + "\n</div>"


def pictures(images: Mapping[str, NDArray[np.uint8]]) -> str:
    """Named images in a row."""
    parts = [f"<div>{picture(image, name)}{escape(name)}</div>" for name, image in images.items()]
    return '<div class="strip">\n' + "\n".join(parts) + "\n</div>"


def picture(image: NDArray[np.uint8], description: str) -> str:
    """An image that is part of the page."""
    stored = io.BytesIO()
    Image.fromarray(image).save(stored, "PNG", optimize=True)
    data = base64.b64encode(stored.getvalue()).decode("ascii")
    height, width = image.shape[:2]
    size = f'width="{width}" height="{height}"'
    return f'<img src="data:image/png;base64,{data}" alt="{escape(description)}" {size}>'


def facts(named: Mapping[str, str]) -> str:
    """Names and what they stand for."""
    return "<dl>\n" + "\n".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in named.items()) + "\n</dl>"


def _figure(plot: Plot) -> str:
    return f"<figure><h3>{escape(plot.title)}</h3>\n{plot.svg}\n<figcaption>{escape(plot.note)}</figcaption></figure>"
