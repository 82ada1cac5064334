"""What BatchNorm layers normalize by: the formula, and particles of several kinds against every engine and alone."""

import itertools
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor, nn

import polytta
from polytta.adapter import Adapted
from polytta.checks.networks import small_model, small_stream
from polytta.errors import ConfigError
from polytta.methods import SAR, DeYO, Tent
from polytta.models._torchvision_cpu import import_zoo
from polytta.network.statistics import blended, use_statistics
from polytta.particles import FoldedEngine, StaticFoldedEngine
from polytta.particles.counted_norm import counted_norm

KINDS = ("source", "batch", "blend")
# Keeps some samples of a batch of six and often none or one of them.
FEW = DeYO(entropy_threshold=0.5, plpd_threshold=0.05)
METHODS = {"all": Tent(), "few": FEW, "twice": SAR(entropy_threshold=0.9)}


def network(kind: type[nn.Module] = nn.BatchNorm2d, dtype: torch.dtype = torch.float64) -> nn.Module:
    """The small network of the checks, with stored statistics that say something."""
    model = small_model("batch", dtype=dtype)
    generator = torch.Generator().manual_seed(3)
    for block in model.blocks:
        old, block.norm = block.norm, kind(block.norm.num_features).to(dtype).eval()
        block.norm.load_state_dict(old.state_dict())
        for name, value in (("running_mean", 0.4 * torch.randn(8, generator=generator)),
                            ("running_var", 0.3 + 2 * torch.rand(8, generator=generator))):  # fmt: skip
            getattr(block.norm, name).copy_(value)
    return model


def adapter(engine: str = "folded", kind: type[nn.Module] = nn.BatchNorm2d, **options: object) -> Adapted:
    arguments = {"method": Tent(), "particles": 3, "statistics": KINDS, "lr": 0.02, "lr_spread": 0.0, **options}
    return polytta.adapt(network(kind), engine=engine, exclude=None, shared_noise=True, **arguments)


def run(adapted: Adapted, stream: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Answers, those of every particle, and parameters."""
    told = [(adapted.particles_log_probs(x), adapted(x)) for x in stream]
    return torch.stack([one[1] for one in told]), torch.stack([one[0] for one in told]), adapted.theta


def assert_equal(left: tuple[Tensor, ...], right: tuple[Tensor, ...]) -> None:
    for one, other in zip(left, right, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-9)


# ---------------------------------------------------------------------- the formula


def test_images_and_stored_ones_count_alike() -> None:
    of_batch, stored = torch.tensor([3.0, -1.0]), torch.tensor([1.0, 1.0])
    assert blended(of_batch, stored, 4, 16.0).tolist() == pytest.approx([(4 * 3 + 16) / 20, (-4 + 16) / 20])
    assert blended(of_batch, stored, 16, 16.0).tolist() == pytest.approx([2.0, 0.0])
    assert torch.equal(blended(of_batch, stored, 5, 0.0), of_batch)
    assert torch.equal(blended(of_batch, stored, 5, torch.inf), stored)


class ByHand(nn.Module):
    """BatchNorm by sums over the batch, its moments counted n times and the stored ones sixteen times."""

    def __init__(self, norm: nn.BatchNorm2d) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        norm, images = self.norm, x.shape[0]
        channels = []
        for c in range(x.shape[1]):
            values = x[:, c]
            mean = values.sum() / values.numel()
            var = (values - mean).square().sum() / values.numel()
            mean = (images * mean + 16 * norm.running_mean[c]) / (images + 16)
            var = (images * var + 16 * norm.running_var[c]) / (images + 16)
            channels.append((values - mean) / (var + norm.eps).sqrt() * norm.weight[c] + norm.bias[c])
        return torch.stack(channels, dim=1)


@pytest.mark.parametrize("batch", [1, 6, 64])
@pytest.mark.parametrize("engine", ["loop", "folded", "static"])
def test_a_blend_is_a_batch_norm_written_by_hand(engine: str, batch: int) -> None:
    written = network()
    for block in written.blocks:
        block.norm = ByHand(block.norm)
    (x,) = small_stream(1, batch)
    adapted = polytta.adapt(network(), "source", particles=1, statistics="blend", engine=engine)
    assert torch.allclose(adapted(x), written(x).log_softmax(dim=-1), rtol=0, atol=1e-9)
    model = network()
    use_statistics(model, "blend")
    assert torch.allclose(model(x), written(x), rtol=0, atol=1e-9)


def test_kinds_say_different_things_and_a_layer_without_stored_ones_goes_by_the_batch() -> None:
    (x,) = small_stream(1, 6)
    told = adapter(method="source").particles_log_probs(x)
    for one, other in itertools.combinations(told, 2):
        assert float((one - other).abs().max()) > 0.01
    bare = network()
    for block in bare.blocks:
        block.norm.running_mean = block.norm.running_var = None
    told = polytta.adapt(bare, "source", particles=3, statistics=KINDS).particles_log_probs(x)
    assert torch.allclose(told, told[:1].expand_as(told), rtol=0, atol=1e-12)


def test_what_follows_may_work_in_place() -> None:
    x, affine = torch.randn(4, 3, 2, 2).requires_grad_(), torch.ones(2, 3).requires_grad_()
    out = counted_norm(x, affine, affine, torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 1e-5)
    out.relu_().sum().backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())


@pytest.mark.parametrize("twice", [False, True])
def test_marked_images_are_normalized_as_if_they_were_alone(twice: bool) -> None:
    adapted = adapter("static", statistics="batch", lr=0.0)
    (x,) = small_stream(1, 8, dtype=torch.float64)
    adapted.predict(x)
    where = torch.tensor([[True] * 8, [True, False] * 4, [False] * 3 + [True] * 5])
    theta = adapted.theta + 0.1 * torch.randn(adapted.theta.shape, dtype=torch.float64)
    images = x.expand(3, *x.shape)
    found = []
    for kind in (FoldedEngine, StaticFoldedEngine):
        engine = kind(adapted.source_network, adapted.layout, adapted._session.findings, "batch")
        given = [one.clone().requires_grad_() for one in (theta, images)]
        logits = engine.outputs(*given, where, twice=twice)[0] * where.unsqueeze(-1)
        slopes = torch.autograd.grad(logits.sin().sum(), given, create_graph=twice)
        bends = torch.autograd.grad(sum(one.square().sum() for one in slopes), given) if twice else ()
        found.append((logits, *slopes, *bends))
    for got, expected in zip(*found, strict=True):
        assert torch.allclose(got, expected, rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------------- engines, and particles alone


@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("method", METHODS)
def test_engines_agree_and_every_particle_is_what_it_is_alone(method: str, batch: int) -> None:
    stream, options = small_stream(5, batch), {"method": METHODS[method]}
    whole = run(adapter("loop", **options), stream)
    for engine in ("folded", "static"):
        assert_equal(run(adapter(engine, **options), stream), whole)
    for number, kind in enumerate(KINDS):
        _, told, theta = run(adapter("loop", particles=1, statistics=kind, **options), stream)
        assert_equal((told[:, 0], theta[0]), (whole[1][:, number], whole[2][number]))


def test_the_filter_keeps_none_one_and_several() -> None:
    """Else the tests above would say nothing of few samples."""
    adapted, kept = adapter(method=FEW), set()
    for x in small_stream(5, 6):
        adapted(x)
        kept.update(adapted.last.selected["plpd"])
    assert {0, 1} < kept


@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("engine", ["folded", "static"])
@pytest.mark.parametrize("method", ["all", "few"])
def test_multiplied_with_lenses(method: str, engine: str, batch: int) -> None:
    options = {"method": METHODS[method], "axes": "product", "particles": None, "lenses": ["unchanged", "farther"]}
    stream = small_stream(4, batch)
    runs = [run(adapter(one, **options), stream) for one in ("loop", engine)]
    assert runs[0][2].shape[0] == 6
    assert_equal(*runs)


@pytest.mark.parametrize("engine", ["loop", "folded", "static"])
@pytest.mark.parametrize("method", ["all", "few"])
def test_two_at_once_and_two_populations(method: str, engine: str) -> None:
    options, streams = {"method": METHODS[method]}, [small_stream(4, 6, seed=seed) for seed in (0, 1)]
    alone = [run(adapter(engine, **options), stream) for stream in streams]
    assert_equal(run(adapter(engine, particles_at_once=2, **options), streams[0]), alone[0])
    both = [torch.stack(pair) for pair in zip(*streams, strict=True)]
    answers, told, theta = run(adapter(engine, populations=2, particles_at_once=2, **options), both)
    for number, single in enumerate(alone):
        assert_equal((answers[:, number], told[:, number], theta[3 * number : 3 * number + 3]), single)


@pytest.mark.parametrize("engine", ["folded", "static"])
def test_particles_of_several_kinds_may_interact(engine: str) -> None:
    stream, options = small_stream(4, 6), {"method": FEW, "diversity": "kl"}
    assert_equal(run(adapter(engine, **options), stream), run(adapter("loop", **options), stream))


class WithActivation(nn.BatchNorm2d):
    """A layer that does something else too."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.act = nn.LeakyReLU(0.3)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(super().forward(x))


def timm_layer() -> type[nn.Module]:
    if find_spec("timm") is None:
        pytest.skip("timm is not installed")
    layer: type[nn.Module] = import_zoo("timm").layers.BatchNormAct2d
    return layer


@pytest.mark.parametrize("whose", ["own", "timm"])
def test_a_layer_with_an_activation_inside(whose: str) -> None:
    kind = WithActivation if whose == "own" else timm_layer()
    stream = small_stream(3, 6)
    runs = [run(adapter(engine, kind), stream) for engine in ("loop", "folded", "static")]
    assert_equal(runs[1], runs[0])
    assert_equal(runs[2], runs[0])
    plain = run(adapter("loop"), stream)
    assert float((plain[0] - runs[0][0]).abs().max()) > 0.01


# ---------------------------------------------------------------------- frozen


@pytest.mark.parametrize("lenses", [None, ["unchanged", "farther", "sharper"]])
@pytest.mark.parametrize("kind", [nn.BatchNorm2d, WithActivation])
def test_frozen_ones_answer_as_particles_do(kind: type[nn.Module], lenses: list[str] | None) -> None:
    adapted, stream = adapter("folded", kind, lenses=lenses, aggregate="evidence"), small_stream(5, 6)
    for x in stream[:4]:
        adapted(x)
    for x in (stream[4], stream[4][:1]):
        told = adapted.particles_log_probs(x)
        for which in (0, 1, 2, "best"):
            number = adapted.best() if which == "best" else which
            frozen = adapted.freeze(which)(x)
            assert torch.allclose(frozen, told[number], rtol=0, atol=1e-9)
        assert torch.allclose(adapted.freeze("ensemble")(x), adapted.predict(x), rtol=0, atol=1e-9)
    with pytest.raises(ConfigError, match="which: got 'merged' for particles with different lenses or statistics"):
        adapted.freeze("merged")


def test_the_mean_of_blended_particles_is_blended() -> None:
    adapted, (x,) = adapter(statistics="blend"), small_stream(1, 6)
    told = adapted.particles_log_probs(x)
    assert torch.allclose(adapted.freeze("merged")(x), told[0], rtol=0, atol=1e-9)
