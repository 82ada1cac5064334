import numpy as np
import pytest

from polytta.lab.bench.tally import Tally
from polytta.lab.scores import BINS, Reliability, calibration_error, confidence_bins, pooled_calibration_error


def test_calibration_error_of_certain_predictions() -> None:
    sure = np.ones(4)
    assert calibration_error(sure, np.array([True] * 4)) == 0.0
    assert calibration_error(sure, np.array([True, True, True, False])) == 0.25


def test_bins_are_equally_wide_and_one_is_in_the_last() -> None:
    edges = np.arange(BINS) / BINS + 0.01
    assert confidence_bins(edges).tolist() == list(range(BINS))
    assert confidence_bins(np.array([0.0, 1.0])).tolist() == [0, BINS - 1]


def test_several_records_count_as_one_stream() -> None:
    """From their bins alone."""
    rng = np.random.default_rng(0)
    parts, bins = [], []
    for count in (300, 70):
        tally = Tally(np.zeros(count, np.int64), None, 10)
        tally.confidence, tally.correct = rng.random(count).astype(np.float32), rng.random(count) < 0.6
        parts.append((tally.confidence, tally.correct))
        bins.append(tally.reliability())
    together = [np.concatenate(part) for part in zip(*parts, strict=True)]
    assert pooled_calibration_error(bins) == pytest.approx(calibration_error(*together))
    own = [pooled_calibration_error([one]) for one in bins]
    assert own == pytest.approx([calibration_error(*part) for part in parts])


def test_opposite_errors_cancel_within_a_bin() -> None:
    sure, modest = Reliability((0.8,), (0.6,), (10,)), Reliability((0.6,), (0.8,), (10,))
    assert pooled_calibration_error([sure]) == pytest.approx(0.2)
    assert pooled_calibration_error([sure, modest]) == pytest.approx(0.0)
