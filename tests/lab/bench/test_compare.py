from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.lab.bench.cells import run_cell, tiny_cell
from tests.lab.bench.networks import TINY
from tests.lab.bench.records import CELL, PINS, random_record

from polytta.errors import InputError
from polytta.lab.bench.comparison import compare, comparison_text, mcnemar
from polytta.lab.bench.record import Record


def with_correct(record: Record, correct: np.ndarray) -> Record:
    results = replace(record.results, accuracy=100 * float(correct.mean()))
    return replace(record, correct=correct, results=results)


def test_another_normalisation_is_named() -> None:
    one = run_cell(tiny_cell("source"))
    other = run_cell(tiny_cell("source", model=TINY.replace("tiny", "shifted")))
    found = {difference.fact: difference for difference in compare([one], [other]).differences}
    assert set(found) == {"cell.model", "pins.model.id", "pins.model.preprocessing.mean"}
    assert found["pins.model.preprocessing.mean"].a == [0.5, 0.5, 0.5]
    assert found["pins.model.preprocessing.mean"].b == [0.4, 0.4, 0.4]
    assert "preprocessing.mean" in comparison_text(compare([one], [other]))


def test_a_record_is_the_same_as_itself(tmp_path: Path) -> None:
    record = random_record()
    comparison = compare([record], [Record.read(record.write(tmp_path))])
    assert comparison.differences == []
    (verdict,) = comparison.verdicts.values()
    assert verdict.noise
    assert verdict.gain == 0


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (3, 1), (12, 2), (40, 41), (900, 700)])
def test_mcnemar_is_the_binomial_test(gained: int, lost: int) -> None:
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar(gained, lost) == pytest.approx(expected)


@pytest.mark.parametrize(("changed", "noise"), [(5, True), (6, False)])
def test_one_stream_is_paired_image_by_image(changed: int, noise: bool) -> None:
    """Five flips of a coin may all fall the same way; with six it is less likely than one in twenty."""
    record = with_correct(random_record(), np.arange(40) < 20)
    better = with_correct(record, np.arange(40) < 20 + changed)
    (verdict,) = compare([record], [better]).verdicts.values()
    assert verdict.gain == pytest.approx(100 * changed / 40)
    assert verdict.noise is noise
    assert f"{changed} gained, 0 lost" in verdict.how


def test_other_streams_are_not_paired() -> None:
    other = random_record(pins={**PINS, "stream": {"sha256": "1" * 64, "images": 40}})
    (verdict,) = compare([random_record()], [other]).verdicts.values()
    assert "not paired" in verdict.how


def test_seeds_are_paired_and_what_varies_is_their_difference() -> None:
    def run(gains: list[int]) -> list[Record]:
        pins = [{**PINS, "stream": {"sha256": str(seed) * 64, "images": 40}} for seed in range(len(gains))]
        records = [random_record(seed=seed, pins=pins[seed]) for seed in range(len(gains))]
        return [
            with_correct(replace(record, cell=replace(record.cell, seed=seed)), np.arange(40) < 20 + 3 * seed + gain)
            for seed, (record, gain) in enumerate(zip(records, gains, strict=True))
        ]

    steady = compare(run([0, 0, 0]), run([2, 2, 3]))
    (verdict,) = steady.verdicts.values()
    assert not verdict.noise
    gains = [5.0, 5.0, 7.5]
    interval = stats.t.interval(0.95, 2, np.mean(gains), stats.sem(gains))
    assert verdict.margin == pytest.approx((interval[1] - interval[0]) / 2, rel=1e-3)
    (verdict,) = compare(run([0, 0, 0]), run([4, -3, 2])).verdicts.values()
    assert verdict.noise
    assert steady.differences == []


def test_cells_without_a_partner_are_counted_and_none_at_all_is_refused() -> None:
    records = [random_record(severity=severity) for severity in (1, 2, 3)]
    comparison = compare(records[:2], records[1:])
    assert (comparison.only_a, comparison.only_b) == (1, 1)
    assert "Without a partner" in comparison_text(comparison)
    with pytest.raises(InputError, match="no cell in common"):
        compare(records[:2], records[2:])


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("batch_size", (1, 64)),
        ("images", (40, None)),
        ("normalisation", ("correct", "sar2023")),
        ("model", ("timm/net", "torchvision/net")),
        ("corruption", (("fog", "snow"), ("fog", "frost"))),
    ],
)
def test_cells_that_differ_in_one_field_are_rows_of_their_own(field: str, values: tuple[object, object]) -> None:
    run = [random_record(seed=number, **{field: value}) for number, value in enumerate(values)]
    comparison = compare(run, run)
    assert len(comparison.verdicts) == 2
    assert all(verdict.gain == 0 for verdict in comparison.verdicts.values())
    assert comparison.differences == []
    assert all(f"{field}=" in name for name in comparison.verdicts)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"precision": "bf16"}, "precision=bf16"),
        ({"diversity": {"name": "grad", "weight": 0.5}}, "diversity.weight=0.5"),
        ({"lr_spread": 0.5}, "lr_spread=0.5"),
    ],
)
def test_cells_that_differ_in_one_option_are_rows_of_their_own(settings: dict[str, object], named: str) -> None:
    run = [random_record(settings={**CELL.settings, "diversity": "grad", **more}) for more in ({}, settings)]
    comparison = compare(run, run)
    assert len(comparison.verdicts) == 2
    assert any(named in name for name in comparison.verdicts)


def test_an_option_that_is_given_as_its_default_is_no_difference() -> None:
    spelt_out = random_record(settings={**CELL.settings, "lr_spread": 0.2, "exclude": "auto"})
    assert compare([random_record()], [spelt_out]).differences == []


def test_runs_that_differ_as_a_whole_are_compared_and_the_fact_is_named() -> None:
    runs = [[random_record(variant=v, normalisation=n) for v in ("a", "b")] for n in ("correct", "sar2023")]
    comparison = compare(*runs)
    assert [difference.fact for difference in comparison.differences] == ["cell.normalisation"]
    assert len(comparison.verdicts) == 2


def test_a_cell_that_could_be_either_of_two_has_no_partner() -> None:
    twins = [random_record(settings={**CELL.settings, "lr": rate}) for rate in (1e-3, 2e-3)]
    comparison = compare([*twins, random_record(severity=1)], [random_record(), random_record(severity=1)])
    assert (comparison.only_a, comparison.only_b) == (2, 1)


def test_seeds_of_other_streams_are_not_paired() -> None:
    def run(stream: str) -> list[Record]:
        pins = {**PINS, "stream": {"sha256": stream * 64, "images": 40}}
        made = [replace(random_record(pins=pins), cell=replace(random_record().cell, seed=seed)) for seed in (0, 1)]
        return [with_correct(record, np.arange(40) < right) for record, right in zip(made, (10, 30), strict=True)]

    (together,) = compare(run("0"), run("0")).verdicts.values()
    (apart,) = compare(run("0"), run("1")).verdicts.values()
    assert together.how == "paired over 2 seeds"
    assert "not paired" in apart.how
    assert apart.margin == pytest.approx(12.706 * np.hypot(*2 * [stats.sem([25, 75])]))
