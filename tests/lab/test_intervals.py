from statistics import fmean

import pytest
from scipy import stats

from polytta.lab.intervals import chance_of_mean, margin_of_mean, margin_of_share, t_chance, t_point


@pytest.mark.parametrize("freedom", [1, 2, 5, 14, 100])
@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 2.5, 9.0])
def test_chance_is_students(t: float, freedom: int) -> None:
    assert t_chance(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-9)


@pytest.mark.parametrize("freedom", [1, 2, 5, 30, 1000])
def test_point_is_where_chance_is_one_in_twenty(freedom: int) -> None:
    assert t_point(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-6)


def test_a_mean_is_judged_as_by_a_t_test() -> None:
    values = [1.0, 2.5, -0.5, 3.0]
    tested = stats.ttest_1samp(values, 0.0)
    assert chance_of_mean(values) == pytest.approx(tested.pvalue)
    interval = tested.confidence_interval()
    assert fmean(values) + margin_of_mean(values) == pytest.approx(interval.high)


def test_values_that_are_all_the_same_leave_nothing_to_chance() -> None:
    assert chance_of_mean([0.0, 0.0, 0.0]) == 1.0
    assert chance_of_mean([2.0, 2.0, 2.0]) == 0.0


@pytest.mark.parametrize(("right", "images"), [(0, 5), (12, 24), (24, 24), (700, 1000)])
def test_a_share_has_wilsons_interval(right: int, images: int) -> None:
    interval = stats.binomtest(right, images).proportion_ci(method="wilson")
    share = right / images
    wider = max(share - interval.low, interval.high - share)
    assert margin_of_share(100 * share, images) == pytest.approx(100 * wider, rel=1e-3)
