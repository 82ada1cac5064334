from statistics import stdev

import pytest

from polytta.lab.pages.stat import MISSING, Stat, stat_cell


def test_one_seed_has_no_spread() -> None:
    assert Stat.of([3.0]) == Stat(3.0, None, 1)
    assert stat_cell(Stat.of([3.0])).plain == "3.0"


def test_several_seeds_have_the_samples_spread() -> None:
    values = [50.0, 52.0, 57.0]
    stat = Stat.of(values)
    assert (stat.mean, stat.std, stat.seeds) == (53.0, pytest.approx(stdev(values)), 3)
    cell = stat_cell(stat, 2, best=True, below=True)
    assert cell.plain == "53.00 ± 3.61"
    assert (cell.best, cell.below) == (True, True)


def test_nothing_measured_is_a_dash() -> None:
    assert stat_cell(None) is MISSING
