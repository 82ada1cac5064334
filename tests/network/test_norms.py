import pytest
import torch
from torch import Tensor, nn

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import InputError, ModelError
from polytta.network.norms import is_norm, recognise


class ScaledFirst(nn.LayerNorm):
    """A norm nobody could guess: it scales before it normalizes."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.layer_norm(x * self.weight, self.normalized_shape) + self.bias


class OnePlusWeight(nn.Module):
    """RMS norm with scale 1 + weight, which only perturbed weights can tell from a plain one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.rms_norm(x, (x.shape[-1],)) * (1 + self.weight)


class OwnRMSNorm(nn.Module):
    """A user's own RMS norm, of no known class."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width))
        self.variance_epsilon = 1e-4

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.variance_epsilon) * self.weight


class OwnLayerNorm2d(nn.LayerNorm):
    """Layer norm over the channels of NCHW, then an activation, as several libraries fuse it."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.act = nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2))


def test_user_norms_are_recognised_by_what_they_compute() -> None:
    rms = recognise("n", OwnRMSNorm(6), torch.randn(2, 4, 6))
    assert (rms.kind, rms.channel_first, rms.eps) == ("rms", False, 1e-4)
    fused = recognise("n", OwnLayerNorm2d(6), torch.randn(2, 6, 4, 5))
    assert (fused.kind, fused.channel_first) == ("layer", True)
    assert isinstance(fused.post[0], nn.SiLU)


@pytest.mark.parametrize("layer", [ScaledFirst(6), OnePlusWeight(6)], ids=lambda layer: type(layer).__name__)
def test_unknown_norms_are_refused_by_name(layer: nn.Module) -> None:
    layer.__class__.__name__ = f"{type(layer).__name__.removesuffix('Norm')}Norm"
    assert is_norm(layer)
    model = nn.Sequential(nn.Linear(6, 6), layer, nn.Linear(6, 3)).double()
    adapted = polytta.adapt(model, "tent", exclude=None, lr=0.1)
    with pytest.raises(ModelError, match=r"norm layer '1' of class .* which computes something unknown.*exclude='1'"):
        adapted(torch.randn(4, 6, dtype=torch.float64))


def test_a_shared_layer_is_adapted_everywhere_it_is_used() -> None:
    norm = nn.LayerNorm(6)
    model = nn.Sequential(nn.Linear(6, 6), norm, nn.Linear(6, 6), norm, nn.Linear(6, 3)).double()
    outputs = []
    for engine in ("loop", "folded"):
        adapted = polytta.adapt(model, "tent", exclude=None, lr=0.1, engine=engine)
        generator = torch.Generator().manual_seed(0)
        outputs.append([adapted(torch.randn(4, 6, generator=generator, dtype=torch.float64)) for _ in range(4)])
    for one, two in zip(*outputs, strict=True):
        assert torch.allclose(one, two, atol=1e-10)


def test_batch_norm_on_a_single_value_is_refused() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 8), nn.BatchNorm1d(8), nn.Linear(8, 5)).double()
    x = small_stream(1, 1)[0]
    with pytest.raises(InputError, match=r"batch of 1.*statistics='source'"):
        polytta.adapt(model, "tent", exclude=None, statistics="batch")(x)
    assert polytta.adapt(model, "tent", exclude=None, statistics="source")(x).shape == (1, 5)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_batch_norms_of_every_dimension(dimensions: int) -> None:
    conv = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[dimensions]
    norm = {1: nn.BatchNorm1d, 2: nn.SyncBatchNorm, 3: nn.BatchNorm3d}[dimensions]
    model = nn.Sequential(conv(2, 4, 3), norm(4), nn.SiLU(), nn.Flatten(), nn.LazyLinear(3)).double().eval()
    x = torch.randn(4, 2, *[5] * dimensions, dtype=torch.float64)
    model(x)
    results = [
        torch.stack([adapted(x) for _ in range(4)])
        for adapted in (polytta.adapt(model, "tent", exclude=None, lr=0.1, engine=e) for e in ("loop", "folded"))
    ]
    assert torch.allclose(*results, atol=1e-10)


def test_unadapted_batch_norms_use_batch_statistics_too() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4, affine=False))
    model = nn.Sequential(model, nn.Flatten(), nn.Linear(64, 5)).double().eval()
    stream = small_stream(3, 4)
    outputs = []
    for engine in ("loop", "folded", "static"):
        adapted = polytta.adapt(model, "tent", exclude=None, lr=0.1, engine=engine)
        outputs.append(torch.stack([adapted(x) for x in stream]))
    assert torch.allclose(outputs[0], outputs[1], atol=1e-10)
    assert torch.allclose(outputs[0], outputs[2], atol=1e-10)
    moved = torch.cat([x * 3 + 1 for x in stream])
    assert torch.allclose(
        polytta.adapt(model, "norm").predict(moved), polytta.adapt(model, "norm", engine="loop").predict(moved)
    )
    assert not torch.allclose(
        polytta.adapt(model, "norm").predict(moved), polytta.adapt(model, "source").predict(moved)
    )


def test_batch_norm_without_running_statistics_keeps_particles_apart() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, track_running_stats=False), nn.SiLU(), nn.Flatten())
    model = nn.Sequential(model, nn.Linear(144, 5)).double().eval()
    runs = []
    for engine in ("loop", "folded", "static"):
        adapted = polytta.adapt(model, "tent", statistics="source", lr=0.1, exclude=None, engine=engine)
        runs.append(torch.stack([adapted(x) for x in small_stream(6, 4)]))
    assert torch.allclose(runs[0], runs[1], atol=1e-10)
    assert torch.allclose(runs[0], runs[2], atol=1e-10)


def test_the_image_size_may_change_along_a_stream() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))
    for engine in ("folded", "loop"):
        adapted = polytta.adapt(model, "tent", exclude=None, lr=0.01, engine=engine, statistics="batch")
        assert adapted(torch.randn(2, 3, 3, 3)).shape == (2, 5)
        assert adapted(torch.randn(1, 3, 16, 16)).shape == (1, 5)
        with pytest.raises(InputError, match=r"one value per channel|more than 1 value per channel"):
            adapted(torch.randn(1, 3, 3, 3))


class HeldInAList(nn.Module):
    """Calls a registered norm layer through a plain list, past any replacement."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.LayerNorm(6), nn.LayerNorm(6), nn.Linear(6, 3)
        self.kept = [self.first]

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.second(self.kept[0](x)))


class CalledByName(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.head = nn.BatchNorm1d(6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(input=x))


def tied() -> nn.Module:
    model = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 3))
    model[2].weight = model[0].weight
    return model


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (HeldInAList(), "'first' called in a way that its replacement does not see"),
        (CalledByName(), "'norm' called with 0 positional and 1 named arguments"),
        (tied(), "'0' and '2' with one parameter"),
    ],
)
def test_layers_that_would_be_missed_are_refused(model: nn.Module, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        polytta.adapt(model, "tent", exclude=None)(torch.randn(4, 6))


def altered(how: str) -> nn.Module:
    model = small_model("group")
    norm = model.blocks[0].norm
    if how == "hook":
        norm.register_forward_hook(lambda _, __, out: 1.1 * out)
    elif how == "pre-hook":
        norm.register_forward_pre_hook(lambda _, given: (given[0].abs(),))
    elif how == "hook for large batches":
        norm.register_forward_hook(lambda _, __, out: 2 * out if len(out) > 3 else out)
    elif how == "pre-hook for large values":
        norm.register_forward_pre_hook(lambda _, given: (given[0].clamp(-1e6, 1e6),))
    elif how == "forward":
        own = norm.forward
        norm.forward = lambda x: own(x).abs()
    else:
        norm.register_full_backward_hook(lambda _, slopes, __: tuple(2 * slope for slope in slopes))
    return model


@pytest.mark.parametrize("engine", ["folded", "static"])
@pytest.mark.parametrize(
    "how",
    ["hook", "pre-hook", "forward", "backward hook", "hook for large batches", "pre-hook for large values"],
)
def test_an_altered_layer_is_refused_where_it_would_be_replaced(how: str, engine: str) -> None:
    x = small_stream(1, 4)[0]
    with pytest.raises(ModelError, match=r"norm layer 'blocks.0.norm' .* computes something unknown"):
        polytta.adapt(altered(how), "tent", engine=engine, exclude=None)(x)


def test_a_hook_that_only_looks_is_no_alteration() -> None:
    model, seen = small_model("group"), []
    model.blocks[0].norm.register_forward_hook(lambda *_: seen.append(1))
    x = small_stream(1, 4)[0]
    looked, plain = (polytta.adapt(one, "tent", exclude=None)(x) for one in (model, small_model("group")))
    assert torch.equal(looked, plain)


@pytest.mark.parametrize("how", ["hook", "pre-hook", "forward"])
def test_the_loop_leaves_layers_as_they_are(how: str) -> None:
    model, x = altered(how), small_stream(1, 4)[0]
    adapted = polytta.adapt(model, "tent", engine="loop", particles=1, exclude=None)
    assert torch.allclose(adapted(x), model(x).log_softmax(dim=-1))
    adapted(x)
    assert min(adapted.totals.stepped) > 0


@pytest.mark.parametrize("engine", ["folded", "static"])
def test_a_batch_norm_whose_scale_is_made_of_something_else_is_refused(engine: str) -> None:
    model, x = small_model("batch"), small_stream(1, 4)[0]
    nn.utils.parametrizations.weight_norm(model.blocks[0].norm, "weight")
    with pytest.raises(ModelError, match=r"norm layer 'blocks.0.norm' .* computes something unknown"):
        polytta.adapt(model, "tent", engine=engine)(x)
