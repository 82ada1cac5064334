import itertools

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.diversity import Independent
from polytta.methods import DeYO
from polytta.report import Ledger, StepEntry
from polytta.report.measures import mean_off_diagonal, pairwise_distances
from polytta.roles.measures import disagreement


def test_measures_against_loops() -> None:
    theta = torch.randn(4, 6, dtype=torch.float64)
    pairs = [(i, j) for i, j in itertools.product(range(4), range(4)) if i != j]
    distances = pairwise_distances(theta)
    expected = sum((theta[i] - theta[j]).norm().item() for i, j in pairs) / len(pairs)
    assert mean_off_diagonal(distances) == pytest.approx(expected)
    logits = torch.randn(4, 50, 3)
    labels = logits.argmax(-1)
    expected = sum((labels[i] != labels[j]).double().mean().item() for i, j in pairs) / len(pairs)
    assert disagreement(logits).mean().item() == pytest.approx(expected)
    assert mean_off_diagonal(pairwise_distances(theta[:1])) == 0.0


def test_books_survive_steps_without_numbers_and_keep_no_parameters() -> None:
    ledger = Ledger(("kept",), 2, 1, Independent())
    source = torch.zeros(1000)
    for step, numbers in enumerate((torch.arange(24.0) % 2, None, torch.arange(24.0) % 2), start=1):
        theta = torch.zeros(2, 1000)
        ledger.note(StepEntry(step, 4, 0, None if numbers is None else numbers.double(), None, theta, source, {}))
    assert all(entry.theta.untyped_storage().nbytes() == 0 for entry in ledger._pending)
    assert ledger.totals.steps == 3


def test_the_last_report_says_what_happened() -> None:
    adapted = polytta.adapt(small_model("group"), DeYO(0.9, -0.5), lr=0.05, exclude=None)
    assert adapted.last is None
    for step, x in enumerate(small_stream(4, 6), start=1):
        adapted(x)
        report = adapted.last
        assert report.step == step
        assert report.samples == 6
        assert set(report.selected) == {"entropy", "plpd"}
        assert all(second <= first for first, second in zip(*report.selected.values(), strict=True))
        assert report.stepped == tuple(count > 0 for count in report.selected["plpd"])
        assert all((loss > 0) == stepped for loss, stepped in zip(report.loss, report.stepped, strict=True))
        assert all(0 <= value <= torch.log(torch.tensor(5.0)) for value in report.entropy)
    assert report.distance_to_source == pytest.approx((adapted.theta - adapted.source).norm(dim=1).tolist())
    assert report.pairwise_distance > 0
    assert 0 <= report.disagreement <= 1
    assert adapted.totals.steps == 4
    assert adapted.totals.samples == 24
