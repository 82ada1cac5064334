"""Statistics as medians over images: the formula, engines against a layer written by hand, and who cannot bend them."""

from pathlib import Path
from statistics import median_low
from typing import Any

import pytest
import torch
from tests.dispatched import ON_THE_HOST, called_by
from torch import Tensor, nn

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.methods import SAR, DeYO, Tent
from polytta.network.medians import medians, row_moments
from polytta.network.statistics import use_statistics

ENGINES = ("loop", "folded", "static")
KINDS = ("median", "source", "median", "batch", "blend")
# Keeps some samples of a batch of six, and often none or one of them.
FEW = DeYO(entropy_threshold=0.5, plpd_threshold=0.05)
METHODS: dict[str, dict[str, Any]] = {
    "all": {"method": Tent()},
    "few": {"method": FEW},
    "twice": {"method": SAR(entropy_threshold=0.9)},
    "interacting": {"method": Tent(), "diversity": {"name": "grad", "solver": "exact"}},
}


class ByHand(nn.Module):
    """One channel after the other, one image after the other."""

    def __init__(self, norm: nn.BatchNorm2d) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        channels = []
        for c in range(x.shape[1]):
            means = [image[c].mean() for image in x]
            mean = means[_middle(means)]
            powers = [(image[c] - image[c].mean()).square().mean() + (image[c].mean() - mean) ** 2 for image in x]
            var = powers[_middle(powers)]
            normalized = (x[:, c] - mean) / (var + self.norm.eps).sqrt()
            channels.append(normalized * self.norm.weight[c] + self.norm.bias[c])
        return torch.stack(channels, dim=1)


def _middle(values: list[Tensor]) -> int:
    plain = [float(value.detach()) for value in values]
    return plain.index(median_low(plain))


def written_by_hand() -> nn.Module:
    model = network()
    for block in model.blocks:
        block.norm = ByHand(block.norm)
    return model


def network() -> nn.Module:
    model, draw = small_model("batch", dtype=torch.float64), torch.Generator().manual_seed(3)
    for block in model.blocks:
        block.norm.running_mean.copy_(0.4 * torch.randn(8, generator=draw))
        block.norm.running_var.copy_(0.3 + 2 * torch.rand(8, generator=draw))
    return model


def adapter(engine: str = "folded", statistics: Any = KINDS, **options: Any) -> polytta.Adapted:
    particles = 1 if isinstance(statistics, str) else len(statistics)
    given = {"method": Tent(), "lr": 0.02, "lr_spread": 0.0, "shared_noise": True, "particles": particles, **options}
    return polytta.adapt(network(), engine=engine, statistics=statistics, exclude=None, **given)


def run(adapted: polytta.Adapted, stream: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Answers of every particle, and parameters."""
    told = []
    for x in stream:
        told.append(adapted.particles_log_probs(x))
        adapted(x)
    return torch.stack(told), adapted.theta


def assert_equal(left: tuple[Tensor, ...], right: tuple[Tensor, ...]) -> None:
    for one, other in zip(left, right, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-9)


# ---------------------------------------------------------------------- the formula


def test_the_formula_over_marked_rows() -> None:
    x = torch.randn(2 * 5, 3, 4, 4, dtype=torch.float64)
    means, variances = (one.unflatten(0, (2, 5)) for one in row_moments(x))
    marked = torch.tensor([[True, True, False, True, True], [False, True, True, False, True]])
    for among in (None, marked):
        mean, var = medians(means, variances, among)
        for k in range(2):
            here = range(5) if among is None else [n for n in range(5) if marked[k, n]]
            for c in range(3):
                middle = median_low([float(means[k, n, c]) for n in here])
                powers = [float(variances[k, n, c] + (means[k, n, c] - middle) ** 2) for n in here]
                assert float(mean[k, c]) == middle
                assert float(var[k, c]) == pytest.approx(median_low(powers), rel=1e-12)


def test_nobody_at_all_is_no_reason_for_values_that_are_not_finite() -> None:
    means = torch.randn(1, 4, 3).requires_grad_()
    nobody = torch.zeros(1, 4, dtype=torch.bool)
    for found in (medians(means, means**2, nobody), medians(means[:, :0], means[:, :0])):
        slope = torch.autograd.grad(sum(one.sum() for one in found), means)[0]
        assert all(bool(one.isfinite().all()) for one in (*found, slope))


# ---------------------------------------------------------------------- engines


@pytest.mark.parametrize("batch", [1, 6, 9])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_layer_by_hand_says_and_learns_the_same(engine: str, batch: int) -> None:
    rate, (x,) = 0.02, small_stream(1, batch)
    adapted = adapter(engine, "median", lr=rate, optimizer={"name": "sgd", "momentum": 0.0})
    by_hand = written_by_hand()
    logits = by_hand(x)
    assert torch.allclose(adapted(x), logits.log_softmax(dim=-1), rtol=0, atol=1e-9)
    entropy = -(logits.softmax(dim=-1) * logits.log_softmax(dim=-1)).sum(dim=-1).mean()
    named = dict(by_hand.named_parameters())
    names = [name.replace(".norm.", ".norm.norm.") for name in dict(adapted.layout.named(adapted.theta[0]))]
    slopes = torch.autograd.grad(entropy, [named[name] for name in names])
    expected = torch.cat([(named[n] - rate * s).flatten() for n, s in zip(names, slopes, strict=True)])
    assert torch.allclose(adapted.theta[0], expected, rtol=0, atol=1e-9)
    model = network()
    use_statistics(model, "median")
    assert torch.allclose(model(x), logits, rtol=0, atol=1e-9)


@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("options", METHODS.values(), ids=list(METHODS))
def test_engines_agree_and_every_particle_is_what_it_is_alone(options: dict[str, Any], batch: int) -> None:
    stream = small_stream(5, batch)
    whole = run(adapter("loop", **options), stream)
    for engine in ("folded", "static"):
        assert_equal(run(adapter(engine, **options), stream), whole)
    if "diversity" not in options:
        told, theta = run(adapter("loop", "median", **options), stream)
        for number in (0, 2):
            assert_equal((told[:, 0], theta[0]), (whole[0][:, number], whole[1][number]))


@pytest.mark.parametrize("engine", ENGINES)
def test_two_at_once_and_two_populations(engine: str) -> None:
    streams = [small_stream(3, 6, seed=seed) for seed in (0, 1)]
    alone = [run(adapter(engine, method=FEW), stream) for stream in streams]
    assert_equal(run(adapter(engine, method=FEW, particles_at_once=2), streams[0]), alone[0])
    both = [torch.stack(pair) for pair in zip(*streams, strict=True)]
    told, theta = run(adapter(engine, method=FEW, populations=2, particles_at_once=2), both)
    for number, single in enumerate(alone):
        assert_equal((told[:, number], theta[5 * number : 5 * number + 5]), single)


def test_a_step_stays_on_the_device() -> None:
    adapted, stream = adapter("static", method=FEW, guard="default"), small_stream(2, 16)
    adapted(stream[0])
    step, state = next(iter(adapted._session._steps.values()))[0], adapted._session.state
    assert not called_by(lambda: step(state, stream[1].unsqueeze(0))) & ON_THE_HOST


def test_frozen_ones_and_resumed_ones_answer_alike(tmp_path: Path) -> None:
    adapted, stream = adapter(), small_stream(3, 6)
    adapted(stream[0])
    told = adapted.particles_log_probs(stream[1])
    for which in (0, 1, 3):
        assert torch.allclose(adapted.freeze(which)(stream[1]).log_softmax(dim=-1), told[which], rtol=0, atol=1e-9)
    assert torch.allclose(adapted.freeze("ensemble")(stream[1]), adapted.predict(stream[1]), rtol=0, atol=1e-9)
    batch = torch.export.Dim("batch", min=2, max=64)
    exported = torch.export.export(adapted.freeze("ensemble"), (stream[0][:4],), dynamic_shapes=({0: batch},))
    assert torch.allclose(exported.module()(stream[1]), adapted.predict(stream[1]), rtol=0, atol=1e-9)
    adapted.save(tmp_path / "state")
    resumed = polytta.load(tmp_path / "state", network())
    assert resumed.config.statistics == KINDS
    for x in stream[1:]:
        assert torch.equal(resumed(x), adapted(x))


# ---------------------------------------------------------------------- who cannot bend them


@pytest.mark.parametrize("engine", ENGINES)
def test_loud_neighbours_bend_means_and_not_medians(engine: str) -> None:
    (x,) = small_stream(1, 16)
    crowd = torch.cat([x[:12], 30 * x[12:] + 5])
    changed = {}
    for kind in ("batch", "median"):
        adapted = adapter(engine, kind, method="norm", guard="off")
        quiet, loud = adapted.predict(x)[:12].exp(), adapted.predict(crowd)[:12].exp()
        changed[kind] = float((loud - quiet).abs().sum(dim=1).mean()) / 2
    assert changed["batch"] > 0.1, "the test needs neighbours that bend"
    assert changed["median"] < changed["batch"] / 4


def test_how_loud_they_are_is_all_the_same_to_a_layer() -> None:
    (x,) = small_stream(1, 16)
    layer = nn.Sequential(nn.BatchNorm2d(3, affine=False, dtype=torch.float64)).eval()
    use_statistics(layer, "median")
    loud, louder = (torch.cat([x[:12], factor * (x[12:] + 5)]) for factor in (30, 3e4))
    assert torch.allclose(layer(loud)[:12], layer(louder)[:12], rtol=0, atol=1e-9)
    assert float((layer(loud)[:12] - layer(x)[:12]).abs().max()) > 0.01, "they may still be who is not in the middle"
