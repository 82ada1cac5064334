import numpy as np
import pytest
from tests.lab.demo.outcomes import random_outcome

from polytta.lab.demo.settings import ROWS
from polytta.lab.demo.table import as_text, demo_table


def test_scores_by_hand() -> None:
    outcome = random_outcome(40)
    source, other = ROWS[0], ROWS[1]
    right = {
        row.name: [
            [int(outcome.results[row.name, s.name].probs[i].argmax() == s.labels[i]) for i in range(40)]
            for s in outcome.segments
        ]
        for row in (source, other)
    }
    score = outcome.score(other)
    assert score.accuracy == pytest.approx([sum(part) / 40 for part in right[other.name]])
    difference = np.subtract(right[other.name], right[source.name]).ravel()
    assert score.gain == pytest.approx(difference.mean())
    assert score.gain == pytest.approx(score.mean_accuracy - outcome.score(source).mean_accuracy)
    assert score.gain_error == pytest.approx(difference.std() / np.sqrt(80))
    assert score.images_per_second == pytest.approx(80 / 4.0)
    assert outcome.score(source).gain == 0.0


def test_table_lines_up() -> None:
    lines = as_text(demo_table(random_outcome(20))).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines) == 2 + len(ROWS)
