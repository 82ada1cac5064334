"""What a first batch decides, and what one that was refused does not."""

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import InputError


def test_a_refused_batch_decides_no_rate() -> None:
    """BatchNorm on 1 x 1 images refuses a single one, whose rate would be 32 times smaller."""
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 8), torch.nn.BatchNorm1d(8)).double().eval()
    late, plain = (polytta.adapt(network, "tent", particles=1, exclude=None, statistics="batch") for _ in range(2))
    with pytest.raises(InputError, match="got a batch of 1"):
        late(small_stream(1, 1)[0])
    assert bool(late.learning_rates.isnan().all())
    x = small_stream(1, 64)[0]
    assert torch.equal(late(x), plain(x))
    assert torch.equal(late.learning_rates, plain.learning_rates)
    assert late.lr_origin == plain.lr_origin


def test_a_reset_lets_the_next_stream_decide() -> None:
    adapted, fresh = (polytta.adapt(small_model("group"), "tent") for _ in range(2))
    adapted(small_stream(1, 1)[0])
    before = adapted.learning_rates.clone()
    adapted.reset()
    x = small_stream(1, 64)[0]
    adapted(x)
    fresh(x)
    assert torch.equal(adapted.learning_rates, fresh.learning_rates)
    assert not torch.equal(adapted.learning_rates, before)


def test_given_rates_stay_through_a_reset() -> None:
    adapted = polytta.adapt(small_model("group"), "tent", particles=2, lr=[0.1, 0.2])
    adapted(small_stream(1, 4)[0])
    adapted.reset()
    assert adapted.learning_rates.tolist() == [0.1, 0.2]
