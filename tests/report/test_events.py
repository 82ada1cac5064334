"""What the log says of the guard: once for all particles that fare alike, and why."""

import json
import logging
from pathlib import Path

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.guard import ACTIONS, VERDICTS
from polytta.report import events


def test_particles_that_fare_alike_are_told_of_together(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    adapted = polytta.adapt(
        small_model("group"), "tent", particles=3, lr=[1e20, 1e20, 0.0], exclude=None, guard="default"
    )
    adapted.audit(tmp_path / "audit.jsonl")
    with caplog.at_level(logging.INFO, logger="polytta"):
        adapted(small_stream(1, 6)[0])
        assert adapted.totals.steps == 1
    said = "step 1: particles 0, 1 are close to collapse (warn): a step was too long, and was shortened"
    assert [record.getMessage() for record in caplog.records] == [said]
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [line["particle"] for line in lines] == [0, 1]


def test_populations_are_told_apart(caplog: pytest.LogCaptureFixture) -> None:
    adapted = polytta.adapt(
        small_model("group"), "tent", particles=2, populations=2, lr=1e20, exclude=None, guard="default"
    )
    with caplog.at_level(logging.INFO, logger="polytta"):
        adapted(torch.stack(small_stream(2, 6)))
        assert adapted.totals.steps == 1
    starts = [record.getMessage().partition(" are ")[0] for record in caplog.records]
    assert starts == [f"step 1: particles 0, 1 of population {number}" for number in (0, 1)]


def test_there_are_words_for_all_that_a_guard_finds_and_does() -> None:
    assert events._VERDICTS.keys() == events._REASONS.keys() == set(VERDICTS)
    assert events._ACTIONS.keys() == set(ACTIONS.values())
