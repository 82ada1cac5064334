import numpy as np
import pytest
from tests.lab.demo.runs import SECONDS, random_run

from polytta.lab.demo.options import CORRUPTIONS
from polytta.lab.demo.scores import plain_scores, row_score


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
    run = random_run(40)
    assert row_score(run, "Tent").calibration_error == pytest.approx(abs(0.5 - 0.4) / 2 + abs(0.8 - 0.9) / 2)


def test_plain_scores_name_every_record() -> None:
    run = random_run(12)
    plain = plain_scores(run)
    assert list(plain["rows"]) == list(run.options.rows)
    keys = [key for row in plain["rows"].values() for key in row["records"]]
    assert sorted(keys) == sorted(record.key for record in run.records.values())
    assert {name: facts["images"] for name, facts in plain["streams"].items()} == dict.fromkeys(CORRUPTIONS, 12)
