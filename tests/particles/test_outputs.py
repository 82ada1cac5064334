"""What a network may answer, and what becomes of the rest."""

import pytest
import torch
from torch import nn

import polytta
from polytta.aggregate import Evidence, MeanLogits, MeanProbs
from polytta.aggregate.evidence import begin, with_anchors
from polytta.checks.networks import small_model, small_stream
from polytta.particles.outputs import finite_rows


@pytest.mark.parametrize("aggregate", [MeanLogits(), MeanProbs(), Evidence()], ids=repr)
def test_logits_that_have_nearly_overflowed_are_no_answer(aggregate: MeanLogits | MeanProbs | Evidence) -> None:
    """Finite each, but not their differences, nor their sum over particles."""
    far_apart, too_many = [3e38, -3e38, 0.0], [3e38, 3e38, 3e38]
    logits = finite_rows(torch.tensor([[far_apart, [1.0, 2.0, 3.0]], [too_many, [1e29, -1e29, 0.0]]]))
    assert torch.equal(logits[:, 0], torch.zeros(2, 3))
    assert torch.equal(logits[0, 1], torch.tensor([1.0, 2.0, 3.0]))
    state = with_anchors(begin(2, 3, logits, by_fineness=True), torch.arange(2))
    assert aggregate.combine(logits.unsqueeze(0), state, torch.zeros(1, 2)).isfinite().all()


@pytest.mark.parametrize("ends", ["zeros", "clipped"])
def test_a_network_that_answers_zeros_is_not_broken(ends: str) -> None:
    model = small_model("group")
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.fill_(0.0 if ends == "zeros" else -1.0)
    network = model if ends == "zeros" else nn.Sequential(model, nn.ReLU())
    adapted = polytta.adapt(network, exclude=None, guard="default")
    adapted(small_stream(1, 4)[0])
    assert adapted.last is not None
    assert set(adapted.last.health) == {"ok"}
    assert set(adapted.last.broken) == {0}
