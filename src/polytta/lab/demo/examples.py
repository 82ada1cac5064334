"""The last images of a stream as the model saw them, and what two rows took them for."""

from collections.abc import Sequence
from html import escape

from polytta.lab.bench.corrupted_images import CorruptedImages
from polytta.lab.bench.data import open_cell_stream
from polytta.lab.bench.record import Record
from polytta.lab.bench.tally import LAST_ANSWERS
from polytta.lab.pages.elements import picture


def example_cards(records: Sequence[Record]) -> str:
    """A card per image: clean, corrupted, and the answer of each record. All of them are of one stream."""
    stream = open_cell_stream(records[0].cell)
    domain = stream.datasets[0]
    assert isinstance(domain, CorruptedImages)
    items = stream.order.item[-LAST_ANSWERS:].tolist()
    answers = zip(*(record.results.last_answers for record in records), strict=True)
    cards = []
    for item, said in zip(items, answers, strict=True):
        corrupted, label, _ = domain[item]
        name = domain.classes[label]
        pair = picture(domain.clean.images[item], f"{name}, clean") + picture(corrupted, f"{name}, corrupted")
        listed = "".join(
            _answer(record.cell.variant, domain.classes[answer], answer == label)
            for record, answer in zip(records, said, strict=True)
        )
        cards.append(f'<article><div class="pair">{pair}</div><b>{escape(name)}</b><ul>{listed}</ul></article>')
    return '<div class="examples">\n' + "\n".join(cards) + "\n</div>"


def _answer(row: str, answer: str, right: bool) -> str:
    kind, sign = ("right", "✓") if right else ("wrong", "✗")
    return f'<li class="{kind}"><span>{escape(row)}</span> {escape(answer)} {sign}</li>'
