from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.lab.bench.records import PINS, random_record

from polytta.errors import InputError
from polytta.lab.bench.comparison import mcnemar
from polytta.lab.bench.record import Record
from polytta.lab.bench.rows_compared import compare_rows, rows_text


def record(row: str, corruption: str, right: int, seed: int = 0) -> Record:
    pins = {**PINS, "stream": {"sha256": f"{corruption}{seed}", "images": 40}}
    made = random_record(pins=pins, variant=row, corruption=corruption, seed=0)
    made = replace(made, cell=replace(made.cell, seed=seed), correct=np.arange(40) < right)
    return replace(made, results=replace(made.results, accuracy=100 * right / 40))


def run(*rights: tuple[int, int]) -> list[Record]:
    names = ("fog", "snow", "frost", "contrast")
    return [
        record(row, name, right)
        for name, pair in zip(names, rights, strict=False)
        for row, right in zip(("deyo", "lenses"), pair, strict=True)
    ]


def test_three_cells_or_more_are_a_paired_t_test_over_cells() -> None:
    (found,) = compare_rows(*[run((20, 24), (30, 33), (10, 18), (25, 24))] * 2, ("deyo", "lenses"))
    a, b = np.array([50, 75, 25, 62.5]), np.array([60, 82.5, 45, 60])
    tested = stats.ttest_rel(b, a)
    interval = tested.confidence_interval()
    assert found.gain == pytest.approx((b - a).mean())
    assert found.chance == pytest.approx(tested.pvalue)
    assert found.gain + found.margin == pytest.approx(interval.high)
    assert (found.cells, found.better, found.worse, found.gained, found.lost) == (4, 3, 1, 15, 1)
    text = rows_text(("deyo", "lenses"), [found])
    assert "53.12 % | 61.88 %, +8.75 ± " in text
    assert "p = 0.1" in text


def test_two_cells_are_paired_image_by_image() -> None:
    (found,) = compare_rows(*[run((20, 26), (30, 33))] * 2, ("deyo", "lenses"))
    assert found.chance == pytest.approx(mcnemar(9, 0))
    assert "over the images of 2 cells" in rows_text(("deyo", "lenses"), [found])


def test_the_other_way_round_is_the_same_with_the_sign_turned() -> None:
    records = run((20, 24), (30, 33), (10, 18))
    (one,) = compare_rows(records, records, ("deyo", "lenses"))
    (other,) = compare_rows(records, records, ("lenses", "deyo"))
    assert other.gain == pytest.approx(-one.gain)
    assert (other.margin, other.chance) == pytest.approx((one.margin, one.chance))


def test_rows_that_are_not_there_or_never_met_a_stream_together_are_refused() -> None:
    records = run((20, 24))
    with pytest.raises(InputError, match=r"--rows: got 'lense'; allowed are deyo, lenses\."):
        compare_rows(records, records, ("deyo", "lense"))
    apart = [record("deyo", "fog", 20), record("lenses", "snow", 20)]
    with pytest.raises(InputError, match="without a stream in common"):
        compare_rows(apart, apart, ("deyo", "lenses"))
