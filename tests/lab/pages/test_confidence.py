"""Curves of risk and of trust, from records."""

import re
from dataclasses import replace

import pytest
from tests.lab.bench.records import random_record

from polytta.lab.bench.record import Record, SelectiveRisk
from polytta.lab.pages.confidence import risk_plot, weights_plot


@pytest.fixture
def record() -> Record:
    return random_record()


def test_risk_is_the_mean_of_the_records(record: Record) -> None:
    sure, unsure = SelectiveRisk((0.5, 1.0), (0.0, 0.1)), SelectiveRisk((1.0,), (0.5,))
    plot = risk_plot({"both": [replace(record, selective_risk=sure), replace(record, selective_risk=unsure)]})
    assert plot is not None
    assert ">both 30.0</text>" in plot.svg


def test_records_that_do_not_tell_are_left_out(record: Record) -> None:
    older = replace(record, selective_risk=SelectiveRisk())
    assert risk_plot({"old": [older]}) is None
    plot = risk_plot({"old": [older], "new": [record]})
    assert plot is not None
    assert ">old " not in plot.svg


def test_weights_are_shown_where_there_are_any(record: Record) -> None:
    assert weights_plot("row", record, "fog") is None
    weighed = replace(
        record,
        curves=replace(record.curves, weights=((0.2, 0.3, 0.5), (0.1, 0.1, 0.8))),
        particles=replace(record.particles, names=("near", "far", "mirrored"), weights=(0.1, 0.1, 0.8)),
    )
    plot = weights_plot("row", weighed, "fog")
    assert plot is not None
    assert re.findall(r">(0\.\d\d)</text>", plot.svg) == ["0.10", "0.10", "0.80"]
