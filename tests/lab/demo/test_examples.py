import re

import numpy as np
from tests.lab.demo.runs import random_run

from polytta.data.bundled import cifar10_subset_indices, load_cifar10_subset
from polytta.data.corruptions import corrupt
from polytta.lab.bench.data import open_cell_stream
from polytta.lab.demo.examples import example_cards
from polytta.lab.demo.options import SEVERITY
from polytta.lab.pages.elements import picture


def test_cards_show_the_last_images_and_what_was_said_of_them() -> None:
    run = random_run(9)
    records = [run.records[row, "frost"] for row in ("Source", "Default")]
    cards = example_cards(records).split("<article>")[1:]
    clean = load_cifar10_subset()
    items = open_cell_stream(records[0].cell).order.item[-6:]
    ids = cifar10_subset_indices()[items]
    frosted = corrupt(clean.images[items], "frost", SEVERITY, constants="cifar", ids=ids, seed=0)
    assert len(cards) == 6
    for number, (card, item) in enumerate(zip(cards, items, strict=True)):
        label = clean.classes[clean.labels[item]]
        assert f"<b>{label}</b>" in card
        assert picture(clean.images[item], f"{label}, clean") in card
        assert picture(frosted[number], f"{label}, corrupted") in card
        said = re.findall(r'<li class="(right|wrong)"><span>(\w+)</span> (\w+) (✓|✗)</li>', card)
        answers = [clean.classes[record.results.last_answers[number]] for record in records]
        assert [(row, answer) for _, row, answer, _ in said] == list(zip(("Source", "Default"), answers, strict=True))
        for kind, _, answer, sign in said:
            assert (kind, sign) == (("right", "✓") if answer == label else ("wrong", "✗"))


def test_a_stream_shorter_than_that_shows_all_of_it() -> None:
    run = random_run(2)
    assert example_cards([run.records["Source", "frost"]]).count("<article>") == 2
    assert np.unique(open_cell_stream(run.records["Source", "frost"].cell).order.item).size == 2
