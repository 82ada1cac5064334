"""What cannot be done is refused at once, and leaves everything as it was."""

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import ConfigError, InputError


def test_a_batch_of_nothing_usable_and_of_the_wrong_shape_is_no_step() -> None:
    """Whether images are finite is asked before the model is; it must refuse them all the same."""
    adapted = polytta.adapt(small_model("batch"), "tent", particles=1, lr=1e-3, exclude=None)
    x = small_stream(1, 4)[0]
    adapted(x)
    before = adapted.theta.clone()
    with pytest.raises(InputError):
        adapted(torch.full((4, 1, 8, 8), torch.nan, dtype=x.dtype))
    assert int(adapted._session.state.step) == adapted._session.steps == adapted.totals.steps == 1
    assert torch.equal(adapted.theta, before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_stored_statistics_in_half_precision(dtype: torch.dtype) -> None:
    adapted = polytta.adapt(
        small_model("batch").to(dtype), "tent", particles=1, lr=1e-3, exclude=None, statistics="source"
    )
    assert adapted(small_stream(1, 4)[0].to(dtype)).isfinite().all()


def test_an_engine_for_another_device_is_refused_before_the_first_batch() -> None:
    with pytest.raises(ConfigError, match=r"engine: got 'graph'"):
        polytta.adapt(small_model("group"), engine="graph", exclude=None)


def test_broken_images_of_the_first_batch_are_images_of_it_all_the_same() -> None:
    """The rate goes by how large batches are, not by how much of the first could be used."""
    whole, broken = (polytta.adapt(small_model("group"), "tent", particles=1, exclude=None) for _ in range(2))
    x = small_stream(1, 64)[0]
    whole(x)
    x[:62] = torch.nan
    broken(x)
    assert torch.equal(broken.learning_rates, whole.learning_rates)


def test_a_rate_that_overflows_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"lr: got 1e\+39; allowed are numbers from 0 to 1e\+30"):
        polytta.adapt(small_model("group").float(), "tent", lr=1e39, exclude=None)
