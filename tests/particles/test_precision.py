"""A trunk in bfloat16 is close to one in float32, on a CPU too, and particles keep all their digits."""

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import ConfigError
from polytta.particles import PLAIN_ENGINES


@pytest.mark.parametrize("engine", PLAIN_ENGINES)
@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
def test_bf16_is_close_to_fp32(kind: str, engine: str) -> None:
    model = small_model(kind, dtype=torch.float32, confidence=4.0)
    stream = small_stream(10, 6, dtype=torch.float32)
    for diversity in ("none", "kl", "grad"):
        arguments = {"diversity": diversity, "lr": 1e-3, "exclude": None, "engine": engine}
        exact = polytta.adapt(model, "tent", **arguments)
        fast = polytta.adapt(model, "tent", precision="bf16", **arguments)
        for x in stream:
            assert (fast(x).exp() - exact(x).exp()).abs().max() <= 0.06, diversity
        assert not torch.equal(fast.theta, exact.theta)
        assert fast.theta.dtype == torch.float32
        assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("dtype", "precision", "allowed"),
    [(torch.float32, "tf32", "'fp32' or 'bf16'"), (torch.float64, "bf16", "'fp32'"), (torch.float64, "tf32", "'fp32'")],
)
def test_what_a_cpu_cannot_do_is_refused(dtype: torch.dtype, precision: str, allowed: str) -> None:
    adapted = polytta.adapt(small_model("group", dtype=dtype), "tent", precision=precision)
    expected = rf"precision: got '{precision}' for a {dtype} model on cpu; allowed there is {allowed}\."
    with pytest.raises(ConfigError, match=expected):
        adapted(small_stream(1, 4, dtype=dtype)[0])
