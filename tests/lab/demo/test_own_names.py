import pytest

from polytta.data.datasets.cifar_classes import CIFAR10_CLASSES
from polytta.errors import InputError
from polytta.lab.demo.options import CLIP
from polytta.lab.demo.own_names import answer_cards, answered_by_names, names_table
from polytta.lab.pages.tables import as_text

NAMES = ("a <i>cat</i>", "ship", "teapot", "sports car")


def test_every_class_has_an_image_and_the_likeliest_of_the_names() -> None:
    found = answered_by_names(CLIP.model, NAMES, seed=0)
    assert [one.name for one in found] == list(CIFAR10_CLASSES)
    for one in found:
        names, values = zip(*one.answers, strict=True)
        assert len(set(names)) == 3
        assert set(names) <= set(NAMES)
        assert sorted(values, reverse=True) == list(values)
        assert sum(values) <= 1
    table = as_text(names_table(found))
    assert table.count("%") == 30
    cards = answer_cards(found)
    assert cards.count("<img") == 10
    assert "<i>" not in cards
    others = answered_by_names(CLIP.model, NAMES, seed=1)
    assert any((one.image != other.image).any() for one, other in zip(found, others, strict=True))


def test_two_names_are_enough_and_one_is_not() -> None:
    assert len(answered_by_names(CLIP.model, ("cat", "dog"), seed=0)[0].answers) == 2
    with pytest.raises(InputError, match="classes: got"):
        answered_by_names(CLIP.model, ("cat",), seed=0)
