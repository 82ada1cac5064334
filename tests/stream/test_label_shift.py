"""The properties read off the published index files: purity 0.998, 43.2 to 43.35 thousand images met."""

import math
import random

import numpy as np
import pytest

from polytta.stream import LabelShift

IMAGENET = np.repeat(np.arange(1000, dtype=np.int32), 50)


@pytest.mark.parametrize("seed", [2021, 2022, 2023, 2024, 2025])
def test_reference_properties(seed):
    order = LabelShift(seed=seed).order([IMAGENET])
    assert len(order) == 100_000
    turns = IMAGENET[order.item].reshape(1000, 100)
    leaders = np.array([np.bincount(turn).argmax() for turn in turns])
    assert sorted(leaders) == list(range(1000))
    assert (turns == leaders[:, None]).mean() == pytest.approx(0.998, abs=0.0005)
    assert 43.20 <= round(len(np.unique(order.item)) / 1000, 2) <= 43.35
    expected = list(range(1000))
    random.Random(seed).shuffle(expected)
    assert leaders.tolist() == expected


def test_same_draws_as_the_published_recipe():
    """One choice per image with its own probabilities, then per class one draw with replacement."""
    labels = np.repeat(np.arange(10, dtype=np.int32), 20)
    ratio, draws = 5.0, 30
    turns = list(range(10))
    random.Random(2023).shuffle(turns)
    legacy = np.random.RandomState(2022)
    classes = []
    for leader in turns:
        odds = np.full(10, 1 / (ratio + 9))
        odds[leader] *= ratio
        classes += [legacy.choice(10, p=odds) for _ in range(draws)]
    expected = np.zeros(300, int)
    for label in range(10):
        places = np.array(classes) == label
        expected[places] = 20 * label + legacy.randint(0, 20, places.sum())
    order = LabelShift(seed=2023, ratio=ratio, draws_per_class=draws).order([labels])
    assert order.item.tolist() == expected.tolist()


def test_infinite_ratio_is_pure_and_one_is_uniform():
    labels = np.repeat(np.arange(10, dtype=np.int32), 50)
    pure = labels[LabelShift(ratio=math.inf, draws_per_class=40).order([labels]).item].reshape(10, 40)
    assert (pure == pure[:, :1]).all()
    flat = labels[LabelShift(ratio=1.0, draws_per_class=1000).order([labels]).item].reshape(10, 1000)
    shares = np.stack([np.bincount(turn, minlength=10) for turn in flat]) / 1000
    assert abs(shares - 0.1).max() < 0.04


def test_every_domain_gets_the_same_order_and_a_fresh_model():
    labels = np.repeat(np.arange(10, dtype=np.int32), 20)
    order = LabelShift().order([labels, labels])
    assert order.starts == (0, 1000)
    assert order.item[:1000].tolist() == order.item[1000:].tolist()
    assert LabelShift().reset == "segment"


def test_absent_classes_take_no_turn():
    labels = np.array([0, 0, 3, 3, 7], np.int32)
    order = LabelShift(ratio=math.inf, draws_per_class=4).order([labels])
    assert len(order) == 12
    assert set(labels[order.item].tolist()) == {0, 3, 7}
