"""What a model that reads takes bundled images for, over class names of one's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import torch

from polytta.data.bundled import load_cifar10_subset
from polytta.data.datasets.base import Image
from polytta.lab.pages.elements import picture
from polytta.lab.pages.tables import Table, TableCell, TableRow
from polytta.models import create

SHOWN = 10
_LIKELIEST = 3
NAMES_NOTE = (
    "Clean bundled images, one of each class, and what they are taken for when the model is given your names alone. It "
    "always answers with one of them, however little it fits: what it has never read or seen it can only guess."
)


@dataclass(frozen=True)
class Answered:
    """An image, its class, and the likeliest of the names with their probabilities."""

    image: Image
    name: str
    answers: tuple[tuple[str, float], ...]


def answered_by_names(model: str, classes: Sequence[str], seed: int) -> list[Answered]:
    """An image of each class, drawn by the seed, with zero-shot answers over the names."""
    source, images = create(model, classes=classes), load_cifar10_subset()
    draw = np.random.default_rng(seed)
    items = [int(draw.choice(np.flatnonzero(images.labels == label))) for label in range(SHOWN)]
    with torch.no_grad():
        probs = source.module(source.preprocessing([images.images[item] for item in items])).softmax(dim=1)
    found = []
    for item, row in zip(items, probs, strict=True):
        best = row.topk(min(_LIKELIEST, len(classes)))
        likeliest = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        answers = tuple((classes[place], value) for place, value in likeliest)
        found.append(Answered(images.images[item], images.classes[images.labels[item]], answers))
    return found


def names_table(found: Sequence[Answered]) -> Table:
    """One line per image."""
    header = ("image", *(f"{number}." for number in range(1, 1 + len(found[0].answers))))
    rows = [
        TableRow(one.name, tuple(TableCell(f"{name} {100 * value:.0f} %") for name, value in one.answers))
        for one in found
    ]
    return Table(header, tuple(rows))


def answer_cards(found: Sequence[Answered]) -> str:
    """A card per image."""
    cards = []
    for one in found:
        listed = "".join(f"<li><span>{escape(name)}</span> {100 * value:.0f} %</li>" for name, value in one.answers)
        shown = picture(one.image, f"{one.name}, clean")
        cards.append(f'<article><div class="pair">{shown}</div><b>{escape(one.name)}</b><ul>{listed}</ul></article>')
    return '<div class="examples">\n' + "\n".join(cards) + "\n</div>"
