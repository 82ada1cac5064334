"""The Markov stream on its own, and the other scenarios as its special cases."""

import math

import numpy as np
import pytest

from polytta.stream import Chain, LabelShift, Markov, Mild, Mixed

FREE = Chain(ratio=1)


def labels(classes=5, per_class=8, domains=3):
    return [np.repeat(np.arange(classes, dtype=np.int32), per_class) for _ in range(domains)]


def runs(values):
    return np.diff(np.flatnonzero(np.concatenate([[True], np.diff(values) != 0, [True]])))


def first_item_share(make, pool, repeats=2000):
    """How often each image comes first: one look at whether a shuffle is fair."""
    counts = np.zeros(pool)
    for seed in range(repeats):
        order = make(seed)
        counts[order[0]] += 1
    return counts / repeats


def test_mild_is_a_special_case():
    domains = labels()
    spec = Markov(domains=Chain(stay=1), classes=FREE, fresh_per_domain=True)
    order, mild = spec.order(domains), Mild().order(domains)
    assert order.domain.tolist() == mild.domain.tolist()
    assert order.starts == mild.starts
    assert spec.reset == Mild.reset
    for start in order.starts:
        assert sorted(order.item[start : start + 40]) == list(range(40))


def test_the_special_case_of_mild_is_a_fair_shuffle():
    domains = [np.array([0, 0, 0, 1], np.int32)]
    share = first_item_share(lambda seed: Markov(domains=Chain(stay=1), classes=FREE, seed=seed).order(domains).item, 4)
    assert abs(share - 0.25).max() < 0.04


def test_batch1_and_continual_are_special_cases():
    domains = labels()
    continual = Markov(domains=Chain(stay=1), classes=FREE)
    assert continual.reset == "never"
    assert continual.order(domains).domain.tolist() == Mild().order(domains).domain.tolist()
    single = Markov(domains=Chain(stay=1), classes=FREE, fresh_per_domain=True, batch_size=1)
    assert single.order(domains).item.tolist() == continual.order(domains).item.tolist()


def test_mixed_is_a_special_case():
    domains = [np.zeros(3, np.int32), np.zeros(1, np.int32)]
    spec = Markov(domains=FREE, classes=FREE)
    order = spec.order(domains)
    assert sorted(zip(order.domain.tolist(), order.item.tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
    ]
    assert order.starts == Mixed().order(domains).starts
    share = first_item_share(
        lambda seed: [
            3 * d + i for d, i in zip(*_pair(Markov(domains=FREE, classes=FREE, seed=seed), domains), strict=True)
        ],
        4,
    )
    assert abs(share - 0.25).max() < 0.04


def _pair(spec, domains):
    order = spec.order(domains)
    return order.domain.tolist(), order.item.tolist()


@pytest.mark.parametrize("ratio", [math.inf, 200.0])
def test_label_shift_is_a_special_case(ratio):
    domains = labels(classes=10, per_class=30, domains=2)
    spec = Markov(
        domains=Chain(dwell=1000),
        classes=Chain(dwell=100, ratio=ratio),
        images="again",
        length=2000,
        fresh_per_domain=True,
    )
    order, reference = spec.order(domains), LabelShift(ratio=ratio).order(domains)
    assert order.domain.tolist() == reference.domain.tolist()
    assert order.starts == reference.starts
    expected_purity = 1.0 if math.isinf(ratio) else ratio / (ratio + 9)
    for drawn in (order, reference):
        turns = domains[0][drawn.item].reshape(2, 10, 100)
        leaders = np.array([[np.bincount(turn).argmax() for turn in part] for part in turns])
        assert leaders[0].tolist() == leaders[1].tolist()
        assert sorted(leaders[0]) == list(range(10))
        assert (turns == leaders[..., None]).mean() == pytest.approx(expected_purity, abs=0.015)
        # 100 draws with replacement from 30 images leave about 30 * exp(-100/30) = 1 of them unseen.
        assert 270 <= len(np.unique(drawn.item[:1000])) <= 300


@pytest.mark.parametrize("stay", [0.0, 0.8, 0.95])
def test_length_of_stay_is_geometric(stay):
    domains = labels(classes=4, per_class=5, domains=1)
    spec = Markov(domains=FREE, classes=Chain(stay=stay, step="any"), images="again", length=20_000)
    lengths = runs(domains[0][spec.order(domains).item])
    assert lengths.mean() == pytest.approx(1 / (1 - stay), rel=0.1)


def test_any_other_state_is_equally_likely():
    domains = labels(classes=4, per_class=5, domains=1)
    spec = Markov(domains=FREE, classes=Chain(step="any"), images="again", length=30_000)
    path = domains[0][spec.order(domains).item]
    moves = np.zeros((4, 4))
    np.add.at(moves, (path[:-1], path[1:]), 1)
    shares = moves / moves.sum(1, keepdims=True)
    assert np.diag(shares).max() == 0
    assert abs(shares[~np.eye(4, dtype=bool)] - 1 / 3).max() < 0.02


def test_once_uses_every_image_once_whatever_the_chains():
    domains = labels()
    order = Markov(domains=Chain(stay=0.9, step="any"), classes=Chain(stay=0.9, ratio=50)).order(domains)
    pairs = sorted(zip(order.domain.tolist(), order.item.tolist(), strict=True))
    assert pairs == [(d, i) for d in range(3) for i in range(40)]
    assert len(Markov(length=17).order(domains)) == 17
