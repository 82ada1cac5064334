"""An adapter tells what it is and what it does: in words, to callbacks and to a logger."""

import copy
import logging
import pickle

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import ConfigError
from polytta.report import StepReport


def test_it_says_what_it_is() -> None:
    adapted = polytta.adapt(small_model("group"))
    name, layers = type(adapted.source_network).__name__, len(adapted.config.layers)
    assert repr(adapted) == f"Adapted({name}, 10 particles, deyo, {layers} norm layers, 0 steps)"
    assert "passes per image are known after the first batch" in adapted.summary()
    for x in small_stream(3, 4):
        adapted(x)
    assert repr(adapted).endswith("3 steps)")
    summary = adapted.summary()
    assert "2 pace (pace 0, pace 0.1)" in summary
    assert "5 lens (unchanged, farther, much_sharper, clearer_mirrored, coarser)" in summary
    assert f"{sum(adapted.totals.forward_by_particle) / 12:.1f} forward" in summary
    assert f"{adapted.source.numel():,} parameters each" in summary
    assert "3 steps, 12 images, 0 rejected; trusted most: " in summary
    assert len(polytta.adapt(small_model("batch"), "tent", populations=2).summary().splitlines()) == 7


def test_callbacks_are_told_of_every_step_until_they_are_ended() -> None:
    adapted = polytta.adapt(small_model("group"), "tent", exclude=None)
    seen: list[StepReport] = []
    stop = adapted.on_step(seen.append)
    also = adapted.on_step(lambda report: None)
    for x in small_stream(3, 4):
        adapted(x)
    adapted.predict(x)
    stop(), stop(), also()
    adapted(x)
    assert [report.step for report in seen] == [1, 2, 3]
    scalars = seen[-1].scalars()
    assert scalars["images"] == 4
    assert scalars["loss"] == pytest.approx(sum(seen[-1].loss) / 3)
    assert all(isinstance(value, float) for value in scalars.values())
    with pytest.raises(ConfigError, match="callback: got int; allowed is a function of a StepReport"):
        adapted.on_step(3)


def test_callbacks_stay_with_the_adapter_they_were_given_to() -> None:
    adapted = polytta.adapt(small_model("group"), "tent", exclude=None)
    seen: list[StepReport] = []
    adapted.on_step(lambda report: seen.append(report))
    for twin in (copy.deepcopy(adapted), pickle.loads(pickle.dumps(adapted))):
        twin(small_stream(1, 4)[0])
    assert not seen


def test_the_logger_is_told_what_is_unusual(caplog: pytest.LogCaptureFixture) -> None:
    adapted = polytta.adapt(small_model("group"), "tent", exclude=None)
    x = small_stream(1, 4)[0]
    adapted(x)
    broken = x.clone()
    broken[1] = torch.nan
    with caplog.at_level(logging.INFO, "polytta"):
        adapted(x)
        adapted(broken)
    assert [record.getMessage() for record in caplog.records] == ["step 3: 1 images kept from adaptation"]
    with caplog.at_level(logging.DEBUG, "polytta"):
        adapted(x)
    assert "step 4: images 4, rejected 0, loss" in caplog.records[-1].getMessage()
