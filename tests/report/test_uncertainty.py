"""Uncertainty has its analytic values, and risk curves those of orders that are known."""

from math import log

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import ConfigError
from polytta.report import Uncertainty
from polytta.report.measures import area_under_risk, mutual_information, selective_risk
from polytta.report.weights import MOST_POINTS, WeightHistory


def test_hypotheses_that_agree_and_hypotheses_that_do_not() -> None:
    sure = torch.tensor([[20.0, 0.0], [0.0, 20.0]])
    logits = torch.stack([sure, sure[[0, 0]]])  # both see the first image alike, and the second differently
    even = torch.full((2, 2), 0.5)
    found = Uncertainty.of(logits.softmax(-1).mean(0).log(), logits, even)
    assert torch.allclose(found.mutual_information, torch.tensor([0.0, log(2)]), atol=1e-4)
    assert torch.allclose(found.entropy, torch.tensor([0.0, log(2)]), atol=1e-4)
    assert torch.allclose(found.confidence, torch.tensor([1.0, 0.5]), atol=1e-4)
    assert found.disagreement.tolist() == [0.0, 0.5]
    assert torch.allclose(found.hypotheses, torch.tensor([2.0, 2.0]))
    one = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    trusted = Uncertainty.of(logits[0].log_softmax(-1), logits, one)
    assert torch.allclose(trusted.mutual_information, torch.zeros(2), atol=1e-4)
    assert trusted.hypotheses.tolist() == [1.0, 1.0]


def test_with_equal_weights_it_is_the_mutual_information_of_a_report() -> None:
    logits = torch.randn(3, 5, 4, dtype=torch.float64)
    found = Uncertainty.of(logits.softmax(-1).mean(0).log(), logits, torch.full((5, 3), 1 / 3, dtype=torch.float64))
    assert torch.allclose(found.mutual_information, mutual_information(logits))


@pytest.mark.parametrize("arguments", [{}, {"method": "tent", "exclude": None}], ids=["default", "tent"])
def test_an_adapter_is_asked_without_learning(arguments: dict[str, object]) -> None:
    adapted = polytta.adapt(small_model("group"), **arguments)
    stream = small_stream(4, 6)
    before = adapted.uncertainty(stream[0])
    assert adapted.totals.steps == 0
    assert torch.allclose(before.confidence, adapted.predict(stream[0]).exp().amax(1))
    for x in stream[:3]:
        adapted(x)
    found, told = adapted.uncertainty(stream[3]), adapted.predict(stream[3])
    assert torch.allclose(found.confidence, told.exp().amax(1))
    assert (found.mutual_information >= 0).all()
    assert ((found.hypotheses >= 1 - 1e-9) & (found.hypotheses <= adapted.config.particles + 1e-9)).all()


def test_answers_below_a_confidence_are_not_given() -> None:
    adapted, twin = (polytta.adapt(small_model("group"), "tent", exclude=None) for _ in range(2))
    x = small_stream(1, 8)[0]
    confidence = adapted.predict(x).exp().amax(1)
    least = float(confidence.sort().values[3:5].mean())
    answers = adapted.answer(x, abstain_below=least)
    classes = twin(x).argmax(1)
    assert torch.equal(answers, torch.where(confidence < least, -1, classes))
    assert torch.equal(adapted.theta, twin.theta)
    with pytest.raises(ConfigError, match=r"abstain_below: got 2; allowed are probabilities"):
        adapted.answer(x, abstain_below=2)


def test_risk_of_orders_that_are_known() -> None:
    right = torch.tensor([True, True, False, False])
    best, worst = torch.tensor([4.0, 3, 2, 1]), torch.tensor([1.0, 2, 3, 4])
    assert selective_risk(best, right).tolist() == pytest.approx([0, 0, 1 / 3, 1 / 2])
    assert selective_risk(worst, right).tolist() == pytest.approx([1, 1, 2 / 3, 1 / 2])
    # Among equals the order they came in must not matter.
    assert selective_risk(torch.ones(4), right).tolist() == pytest.approx([1 / 2] * 4)
    assert area_under_risk(best, right) == pytest.approx((1 / 3 + 1 / 2) / 4)
    assert area_under_risk(torch.ones(4), right[[2, 0, 3, 1]]) == pytest.approx(1 / 2)


def test_weights_over_time_are_those_of_the_hypotheses() -> None:
    adapted = polytta.adapt(small_model("group"))
    assert adapted.weights_over_time[1].shape == (0, 10)
    for x in small_stream(3, 4):
        adapted(x)
    steps, weights = adapted.weights_over_time
    assert steps == [1, 2, 3]
    assert weights[-1].tolist() == pytest.approx([one.weight for one in adapted.hypotheses])
    assert torch.allclose(weights.sum(dim=1), torch.ones(3, dtype=weights.dtype))


@pytest.mark.parametrize("on_gpu", [False, True])
def test_a_long_history_gets_coarser_and_stays_bounded(on_gpu: bool) -> None:
    history = WeightHistory()
    for step in range(1, 40_001):
        history.note(step, lambda step=step: torch.tensor([float(step)]), on_gpu=on_gpu)
    gaps = {after - before for before, after in zip(history.steps, history.steps[1:], strict=False)}
    assert len(gaps) == 1
    assert MOST_POINTS // 2 - 1 <= len(history.steps) <= MOST_POINTS
    assert history.table(1).flatten().tolist() == [float(step) for step in history.steps]
