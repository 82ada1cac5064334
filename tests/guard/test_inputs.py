"""Whatever is thrown at an adapter: a finite answer or a polytta error, and never a broken parameter."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import InputError, PolyttaError

FILLS = [0.0, 1.0, -3.0, 1e30, -1e38, 1e5, 1e-30, float("nan"), float("inf"), float("-inf"), 65504.0]
SHAPES = [(3, 8, 8), (3, 8, 8), (3, 8, 8), (1, 8, 8), (4, 8, 8), (3, 3, 3), (3, 16, 16), (3,), (), (3, 0, 8)]
DTYPES = [torch.float32] * 4 + [torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int64, torch.bool]


@st.composite
def batches(draw: st.DrawFn) -> torch.Tensor:
    shape = draw(st.sampled_from(SHAPES))
    size = draw(st.integers(0, 4))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    x = torch.randn(size, *shape, generator=generator) * draw(st.sampled_from([1.0, 1.0, 1e-3, 50.0]))
    for _ in range(draw(st.integers(0, 3))):
        if x.numel():
            place = draw(st.integers(0, x.numel() - 1))
            value = draw(st.sampled_from(FILLS))
            if draw(st.booleans()):
                x[place % size] = value
            else:
                x.view(-1)[place] = value
    if draw(st.booleans()):
        x = x.nan_to_num(0.0, 1e30, -1e30)
    return x.to(draw(st.sampled_from(DTYPES)))


ADAPTERS = {
    (kind, method): polytta.adapt(
        small_model(kind, dtype=torch.float32), method, lr=0.05, exclude=None, preset="official"
    )
    for kind, method in [("batch", "tent"), ("group", "deyo"), ("layer", "sar"), ("rms", "eata")]
}


@pytest.mark.parametrize("key", ADAPTERS, ids="-".join)
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(x=batches())
def test_no_input_does_harm(key: tuple[str, str], x: torch.Tensor) -> None:
    adapted = ADAPTERS[key]
    before = adapted.theta
    try:
        log_probs = adapted(x)
    except PolyttaError:
        assert adapted.theta is before, "a refused batch changed the state"
        return
    assert log_probs.shape == (x.shape[0], 5)
    assert bool(log_probs.isfinite().all())
    assert bool(adapted.theta.isfinite().all())
    for value in adapted.state_dict().values():
        assert not bool(value.isinf().any())


def test_adapters_above_really_adapted() -> None:
    for adapted in ADAPTERS.values():
        adapted.reset()
        for x in small_stream(20, 4, dtype=torch.float32):
            adapted(x)
        assert sum(adapted.totals.stepped) > 0


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ("image.png", "x: got str; allowed are floating-point images"),
        (
            torch.zeros(2, 3, 8, 8, dtype=torch.uint8),
            "x: got torch.uint8, which the model does not take",
        ),
        (torch.zeros(0, 3, 8, 8), r"x: got an empty batch of shape \(0, 3, 8, 8\)"),
        (torch.zeros(3), r"x: got shape \(3,\); allowed is a batch"),
        (torch.zeros(2, 4, 8, 8), r"x: got images of shape \(4, 8, 8\)"),
        (torch.zeros(2, 3, 8, 8, device="meta"), "x: got a tensor on meta; allowed is the model's device, cpu"),
    ],
)
def test_bad_input_gets_one_clear_sentence(x: object, message: str) -> None:
    adapted = polytta.adapt(small_model("group", dtype=torch.float32), "tent")
    for call in (adapted, adapted.predict, adapted.adapt):
        with pytest.raises(InputError, match=message):
            call(x)


def test_broken_images_are_answered_by_the_source_and_counted() -> None:
    model = small_model("group")
    adapted = polytta.adapt(model, "tent", lr=0.05, exclude=None)
    for x in small_stream(3, 4):
        adapted(x)
    x = small_stream(1, 4)[0]
    x[1, 0, 0, 0] = torch.nan
    x[2] = 1e30
    log_probs = adapted(x)
    assert adapted.last is not None
    assert adapted.last.rejected == 2
    cleaned = x.clone()
    cleaned[1, 0, 0, 0] = 0
    assert torch.allclose(log_probs[1], model(cleaned[1:2]).log_softmax(1)[0])
    assert torch.allclose(adapted.predict(x)[1], log_probs[1])
    everything_broken = torch.full_like(x, torch.nan)
    before = adapted.theta
    assert bool(adapted(everything_broken).isfinite().all())
    assert adapted.theta is before
