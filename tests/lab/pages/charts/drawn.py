"""Series to draw, and charts as trees of elements."""

import xml.etree.ElementTree as ElementTree

import numpy as np

from polytta.lab.pages.charts import Axis, Series

UNIT = Axis("x & y", (0.0, 0.5, 1.0))


def random_series(name: str, number: int, points: int = 5) -> Series:
    rng = np.random.default_rng(number)
    return Series(name, number, np.sort(rng.random(points)), rng.random(points))


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in root.iter("text")]


def points(curve: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = (place.split(",") for place in curve.get("points", "").split())
    return [(float(x), float(y)) for x, y in pairs]
