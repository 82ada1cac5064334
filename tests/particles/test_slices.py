"""A few particles at a time give what all of them at once give, and keep nothing in between."""

from pathlib import Path

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.diversity import KL, SVGD, Grad
from polytta.errors import ConfigError
from polytta.methods import EATA, SAR, DeYO, Method, Tent
from polytta.particles import ENGINES
from polytta.particles.slices import sliced

METHODS: list[Method] = [Tent(), EATA(redundancy=0.9), SAR(), DeYO(entropy_threshold=0.9, plpd_threshold=-0.2)]


PLACES = [(kind, name) for kind in ("batch", "group", "layer") for name in ENGINES
          if name == "folded" or (name != "graph" and kind == "group")]  # fmt: skip


@pytest.mark.parametrize("diversity", ["none", KL(0.1), SVGD(bandwidth="median"), Grad()], ids=lambda d: str(d)[:4])
@pytest.mark.parametrize(("kind", "engine"), PLACES)
def test_slices_change_no_answer(kind: str, diversity: object, engine: str) -> None:
    for method in METHODS:
        arguments = {"particles": 5, "diversity": diversity, "lr": 0.01, "exclude": None, "engine": engine}
        whole = polytta.adapt(small_model(kind), method, **arguments)
        parts = polytta.adapt(small_model(kind), method, particles_at_once=2, **arguments)
        for x in small_stream(4, 5):
            assert torch.allclose(whole(x), parts(x), atol=1e-9), method.name
        assert torch.allclose(whole.theta, parts.theta, atol=1e-9), method.name
        assert whole.totals.selected == parts.totals.selected


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "graph"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_slices_of_which_nothing_was_selected(method: Method, engine: str) -> None:
    """One image at a time and its flips: often no particle of a slice, or none at all, wants a view of it."""
    arguments = {"diversity": Grad(), "views": "flips", "lr": 0.01, "exclude": None, "engine": engine}
    whole = polytta.adapt(small_model("group"), method, **arguments)
    parts = polytta.adapt(small_model("group"), method, particles_at_once=2, **arguments)
    for x in small_stream(12, 1):
        assert torch.allclose(whole(x), parts(x), atol=1e-9)
    assert torch.allclose(whole.theta, parts.theta, atol=1e-9)


def test_populations_in_slices_and_a_saved_state(tmp_path: Path) -> None:
    arguments = {"populations": 2, "seed": [1, 2], "lr": 0.01, "exclude": None}
    model = small_model("layer")
    whole = polytta.adapt(model, METHODS[3], **arguments)
    parts = polytta.adapt(model, METHODS[3], particles_at_once=4, **arguments)
    stream = [torch.stack([x, x.flip(0)]) for x in small_stream(4, 3)]
    for x in stream[:2]:
        assert torch.allclose(whole(x), parts(x), atol=1e-9)
    parts.save(tmp_path / "state")
    back = polytta.load(tmp_path / "state", model)
    assert back.settings.particles_at_once == 4
    for x in stream[2:]:
        assert torch.allclose(whole(x), back(x), atol=1e-9)


def test_a_second_derivative_takes_all_of_them() -> None:
    arguments = {"particles": 3, "diversity": Grad(solver="exact"), "lr": 0.01, "exclude": None}
    runs = [polytta.adapt(small_model("group"), Tent(), particles_at_once=count, **arguments) for count in (None, 1)]
    x = small_stream(1, 4)[0]
    assert torch.equal(runs[0](x), runs[1](x))
    assert torch.equal(runs[0].theta, runs[1].theta)


def test_only_the_inputs_of_a_slice_are_kept() -> None:
    weight = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    x = torch.randn(4, 8, 6, dtype=torch.float64)
    rows: list[list[int]] = []

    def run(
        theta: torch.Tensor, images: torch.Tensor, where: torch.Tensor | None, numbers: torch.Tensor
    ) -> torch.Tensor:
        rows.append(numbers.tolist())
        hidden = (images * theta.unsqueeze(1)).exp()
        return hidden.sin().cumsum(dim=-1)

    numbers = torch.tensor([7, 5, 3, 1])
    kept: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        out = sliced(run, weight, x, None, numbers, 3)
    assert sum(tensor.numel() for tensor in kept) == weight.numel() + x.numel() + numbers.numel()
    slope = torch.randn_like(out)
    (got,) = torch.autograd.grad(out, weight, slope)
    assert rows == [[7, 5, 3], [1], [1], [7, 5, 3]]
    (wanted,) = torch.autograd.grad(run(weight, x, None, numbers), weight, slope)
    assert torch.allclose(got, wanted)


def test_bad_values_get_one_clear_sentence() -> None:
    for value in (0, 1.5, "two"):
        with pytest.raises(ConfigError, match=r"particles_at_once: got .* allowed is a whole number >= 1"):
            polytta.adapt(small_model("group"), particles_at_once=value)
