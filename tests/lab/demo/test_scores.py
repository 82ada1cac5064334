import numpy as np
import pytest
from tests.lab.demo.runs import SECONDS, random_run

from polytta.lab.bench.tally import Tally
from polytta.lab.demo.options import CORRUPTIONS
from polytta.lab.demo.scores import plain_scores, row_score
from polytta.lab.scores import Reliability, calibration_error, pooled_calibration_error


def test_scores_by_hand() -> None:
    run = random_run(40)
    right = {row: [run.records[row, name].correct.tolist() for name in CORRUPTIONS] for row in ("Source", "Tent")}
    score = row_score(run, "Tent")
    assert score.accuracy == pytest.approx([sum(part) / 40 for part in right["Tent"]])
    difference = np.array(right["Tent"], float).ravel() - np.array(right["Source"]).ravel()
    assert score.gain == pytest.approx(difference.mean())
    assert score.gain == pytest.approx(score.mean_accuracy - row_score(run, "Source").mean_accuracy)
    assert score.gain_error == pytest.approx(difference.std() / np.sqrt(80))
    assert score.images_per_second == pytest.approx(80 / (2 * SECONDS))
    assert row_score(run, "Source").gain == 0.0


def test_calibration_error_is_over_all_images() -> None:
    """As if both streams had been one: from the bins alone."""
    rng = np.random.default_rng(0)
    parts, bins = [], []
    for count in (300, 70):
        confidence, correct = rng.random(count).astype(np.float32), rng.random(count) < 0.6
        tally = Tally(np.zeros(count, np.int64), None, 10)
        tally.confidence, tally.correct = confidence, correct
        parts.append((confidence, correct))
        bins.append(tally.reliability())
    together = [np.concatenate(part) for part in zip(*parts, strict=True)]
    assert pooled_calibration_error(bins) == pytest.approx(calibration_error(*together))
    own = [pooled_calibration_error([one]) for one in bins]
    assert own == pytest.approx([calibration_error(*part) for part in parts])


def test_opposite_errors_cancel_within_a_bin() -> None:
    sure, modest = Reliability((0.8,), (0.6,), (10,)), Reliability((0.6,), (0.8,), (10,))
    assert pooled_calibration_error([sure, modest]) == pytest.approx(0.0)


def test_plain_scores_name_every_record() -> None:
    run = random_run(12)
    plain = plain_scores(run)
    assert list(plain["rows"]) == list(run.options.rows)
    keys = [key for row in plain["rows"].values() for key in row["records"]]
    assert sorted(keys) == sorted(record.key for record in run.records.values())
    assert {name: facts["images"] for name, facts in plain["streams"].items()} == dict.fromkeys(CORRUPTIONS, 12)
