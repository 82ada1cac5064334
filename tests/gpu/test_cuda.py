"""The same answers on a GPU: every engine, method and diversifier against the loop on the CPU."""

import copy
import itertools
from pathlib import Path

import pytest
import torch

import polytta
from polytta.aggregate import evidence
from polytta.checks.networks import KINDS, small_model, small_stream
from polytta.diversity import SVGD, Grad
from polytta.methods import EATA, ROID, SAR, DeYO, Method, RDumb, Tent
from polytta.models import create

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]

METHODS: list[Method] = [
    Tent(),
    EATA(redundancy=0.9),
    SAR(),
    DeYO(entropy_threshold=0.9, plpd_threshold=-0.2),
    ROID(),
]
DIVERSITIES = ["none", "kl", SVGD(bandwidth="median"), Grad(solver="exact", scale="literal", weight=0.01), "grad"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_gives_what_the_cpu_gives(kind: str) -> None:
    model, stream = small_model(kind), small_stream(8, 5)
    on_gpu = copy.deepcopy(model).cuda()
    for method in METHODS:
        for diversity in DIVERSITIES:
            arguments = {"diversity": diversity, "lr": 0.01, "exclude": None, "optimizer": ["sgd", "adam", "adamw"]}
            expected = polytta.adapt(model, method, engine="loop", **arguments)
            wanted = [expected(x) for x in stream]
            for engine in ("loop", "folded", "static"):
                adapted = polytta.adapt(on_gpu, method, engine=engine, **arguments)
                for x, reference in zip(stream, wanted, strict=True):
                    got = adapted(x.cuda())
                    assert got.is_cuda
                    assert (got.cpu() - reference).abs().max() <= 1e-6, (method.name, diversity, engine)
                assert adapted.totals.selected == expected.totals.selected


# SVGD divides by distances between particles and the fast Grad takes differences of gradients: both magnify rounding,
# in float32 far beyond what tells a wrong graph from a right one.
JUDGED = [
    ("none", torch.float32, 1e-4),
    ("kl", torch.float32, 1e-4),
    (Grad(solver="exact"), torch.float32, 1e-4),
    (SVGD(bandwidth="median"), torch.float64, 1e-8),
    ("grad", torch.float64, 1e-7),
]
# ROID keeps what is above the mean of a batch, however little.
IN_DOUBLE = (torch.float64, 1e-7)
COMBINATIONS = [
    (("batch", "group", "layer")[place % 3], method, judged[0], *(IN_DOUBLE if method.name == "roid" else judged[1:]))
    for place, (method, judged) in enumerate(itertools.product(METHODS, JUDGED))
]


@pytest.mark.parametrize(("kind", "method", "diversity", "dtype", "tolerance"), COMBINATIONS, ids=repr)
def test_a_graph_gives_what_eager_folding_gives(
    kind: str, method: Method, diversity: object, dtype: torch.dtype, tolerance: float
) -> None:
    model = small_model(kind, dtype=dtype).cuda()
    stream = [x.cuda() for x in small_stream(50, 5, dtype=dtype)]
    arguments = {"diversity": diversity, "lr": 1e-3, "exclude": None}
    with torch.backends.cudnn.flags(allow_tf32=False):
        eager = polytta.adapt(model, method, engine="folded", **arguments)
        graph = polytta.adapt(model, method, engine="graph", **arguments)
        for x in stream:
            expected, got = eager(x), graph(x)
        assert (got - expected).abs().max() <= tolerance
    assert graph.totals.selected == eager.totals.selected
    assert graph.totals.stepped == eager.totals.stepped
    assert min(graph.totals.stepped) > 0


def test_a_graph_survives_resets_other_shapes_and_copies() -> None:
    model = small_model("group").cuda()
    stream = [x.cuda() for x in small_stream(6, 4)]
    arguments = {"method": METHODS[3], "diversity": "grad", "lr": 0.01, "exclude": None}
    graph, eager = polytta.adapt(model, **arguments), polytta.adapt(model, engine="folded", **arguments)
    sizes = [4, 4, 3, 2, 4, 1]

    def run(adapted: polytta.Adapted) -> list[torch.Tensor]:
        return [adapted(x[:size]) for x, size in zip(stream, sizes, strict=True)]

    first, wanted = run(graph), run(eager)
    for got, expected in zip(first, wanted, strict=True):
        assert torch.allclose(got, expected, atol=1e-8), "answers stay what they were when later steps replay"
    report = graph.last
    assert report is not None
    theta = report.theta.clone()
    other = copy.deepcopy(graph)
    broken = torch.cat([stream[0], torch.full_like(stream[0][:1], torch.nan)])
    assert torch.allclose(other(broken), eager(broken), atol=1e-8)
    graph.reset()
    for got, expected in zip(run(graph), wanted, strict=True):
        assert torch.allclose(got, expected, atol=1e-8)
    assert torch.equal(report.theta, theta)


@pytest.mark.parametrize(
    "more",
    [
        {"particles_at_once": 2, "diversity": "grad"},
        {"lenses": "optics", "aggregate": "evidence"},
        {"populations": 2, "lenses": "optics", "diversity": "kl"},
        {"lenses": "optics", "diversity": "grad"},
        {"lenses": "optics", "diversity": Grad(solver="exact", scale="literal", weight=0.01)},
        {"populations": 2, "lenses": "optics", "diversity": "grad", "views": "flips"},
    ],
    ids=["slices", "lenses", "populations", "grad", "exact grad", "populations with grad"],
)
@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
def test_a_graph_of_more_than_the_usual_gives_what_the_cpu_gives(kind: str, more: dict[str, object]) -> None:
    model, stream = small_model(kind), small_stream(8, 4)
    arguments = {"particles": 5, "lr": 0.01, "exclude": None, **more}
    expected = polytta.adapt(model, METHODS[3], **arguments)
    graph = polytta.adapt(copy.deepcopy(model).cuda(), METHODS[3], **arguments)
    for x in stream:
        batch = torch.stack([x, x.flip(0)]) if "populations" in more else x
        # Evidence goes by fineness, which is told in float32.
        tolerance = 1e-5 if "aggregate" in more else 1e-6
        assert (graph(batch.cuda()).cpu() - expected(batch)).abs().max() <= tolerance
    assert graph.totals.selected == expected.totals.selected


PRODUCT = {"axes": "product", "aggregate": "evidence", "lenses": ["unchanged", "horizontal_flip", "sharper"]}


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {**PRODUCT, "method": "tent", "pace": [0, 0.3], "statistics": ["source", "batch", "blend"]},
        {**PRODUCT, "method": ["tent", "deyo", "sar"], "lr": [0, 0.01]},
        {**PRODUCT, "method": "tent", "pace": [0, 30.0]},
        {**PRODUCT, "method": "tent", "pace": [0, 0.3], "populations": 2},
    ],
    ids=["default", "statistics", "methods", "restarts", "populations"],
)
@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
def test_a_graph_of_a_product_gives_what_the_cpu_gives(
    kind: str, arguments: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"NO_WEIGHT": 0.09, "SOME_WEIGHT": 0.2, "SLEEP_AFTER": 20, "SLEEP_EVERY": 4}.items():
        monkeypatch.setattr(evidence, name, value)
    model, stream = small_model(kind), small_stream(24, 6)
    expected = polytta.adapt(model, exclude=None, **arguments)  # type: ignore[arg-type]
    graph = polytta.adapt(copy.deepcopy(model).cuda(), exclude=None, **arguments)  # type: ignore[arg-type]
    # How fine an image is, is told in float32. A pace of 30 throws parameters about, and every rounding with them.
    tolerance = 1e-4 if arguments.get("pace") == [0, 30.0] else 1e-5
    for x in stream:
        batch = torch.stack([x, x.flip(0)]) if "populations" in arguments else x
        assert (graph(batch.cuda()).cpu() - expected(batch)).abs().max() <= tolerance
    assert graph.totals.restarts == expected.totals.restarts
    assert graph._session.asleep == expected._session.asleep
    assert (graph.theta.cpu() - expected.theta).abs().max() <= tolerance


@pytest.mark.parametrize(
    "method",
    [ROID(window=3, reset_every=3), RDumb(entropy_threshold=0.95, redundancy=0.99, window=3, reset_every=3)],
    ids=lambda method: method.name,
)
@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
def test_a_graph_of_windows_and_resets_gives_what_the_cpu_gives(kind: str, method: Method) -> None:
    model = small_model(kind)
    arguments = {"lr": 0.01, "exclude": None}
    expected = polytta.adapt(model, method, engine="loop", **arguments)
    graph = polytta.adapt(copy.deepcopy(model).cuda(), method, engine="graph", **arguments)
    # A larger batch among single images is another recording, over the same window.
    for x in [*small_stream(7, 1), small_stream(1, 4)[0], *small_stream(7, 1, seed=1)]:
        assert (graph(x.cuda()).cpu() - expected(x)).abs().max() <= 1e-6
    assert graph.totals.selected == expected.totals.selected
    assert graph.totals.stepped == expected.totals.stepped
    assert min(graph.totals.stepped) > 0


def test_a_state_taken_over_after_recording_is_the_one_that_goes_on() -> None:
    model, stream = small_model("group").cuda(), [x.cuda() for x in small_stream(6, 4)]
    first, second = (polytta.adapt(model, METHODS[3], lr=0.01, exclude=None) for _ in range(2))
    for x in stream[:3]:
        first(x)
        second(x.flip(0))
    second.load_state_dict(first.state_dict())
    for x in stream[3:]:
        assert torch.allclose(first(x), second(x), atol=1e-9)


def test_what_cannot_be_recorded_runs_without_a_graph() -> None:
    def nosy(x: torch.Tensor, noise: object) -> torch.Tensor:
        return x.flip(-1) if float(x.mean()) > 1e9 else x.flip(-2)

    method = DeYO(entropy_threshold=0.9, plpd_threshold=-0.2, shuffle=nosy)
    model, stream = small_model("group").cuda(), [x.cuda() for x in small_stream(4, 4)]
    adapted = polytta.adapt(model, method, lr=0.01, exclude=None)
    expected = polytta.adapt(model, method, lr=0.01, exclude=None, engine="folded")
    # The first batch always runs without a graph; the second is to be recorded.
    assert torch.allclose(adapted(stream[0]), expected(stream[0]), atol=1e-8)
    with pytest.warns(polytta.errors.PolyttaWarning, match="cannot be recorded as a CUDA graph"):
        assert torch.allclose(adapted(stream[1]), expected(stream[1]), atol=1e-8)
    for x in stream[2:]:
        assert torch.allclose(adapted(x), expected(x), atol=1e-8)


@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
def test_bf16_with_fused_kernels_is_close_to_the_loop(kind: str) -> None:
    model = small_model(kind, dtype=torch.float32, confidence=4.0).cuda()
    stream = [x.cuda() for x in small_stream(10, 6, dtype=torch.float32)]
    for diversity in ("none", "kl", "grad"):
        arguments = {"diversity": diversity, "lr": 1e-3, "exclude": None}
        exact = polytta.adapt(model, "tent", engine="loop", **arguments)
        for precision in ("tf32", "bf16"):
            exact.reset()
            fast = polytta.adapt(model, "tent", engine="graph", precision=precision, **arguments)
            for x in stream:
                assert (fast(x).exp() - exact(x).exp()).abs().max() <= 0.06, (precision, diversity)
            assert fast.theta.dtype == torch.float32


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
@pytest.mark.parametrize("images", [4, 64])
@pytest.mark.parametrize("name", ["cifar10_resnet_gn", "cifar10_resnet_bn"])
def test_a_recorded_residual_network_is_close_to_plain_modules(name: str, images: int, precision: str) -> None:
    """With branches and ReLUs computed in the norm layers' kernels, which read two gradients at once."""
    model = create(f"bundled/{name}").module.cuda()
    generator = torch.Generator().manual_seed(0)
    stream = [torch.randn(images, 3, 32, 32, generator=generator).cuda() for _ in range(6)]
    for diversity in ("none", "grad"):
        arguments = {"diversity": diversity, "lr": 1e-3, "precision": precision}
        plain, recorded = (polytta.adapt(model, "tent", engine=engine, **arguments) for engine in ("static", "graph"))
        for x in stream:
            assert (recorded(x).exp() - plain(x).exp()).abs().max() <= 0.02, diversity


def test_moving_saving_and_loading(tmp_path: Path) -> None:
    model, stream = small_model("group"), small_stream(6, 4)
    adapted = polytta.adapt(model, "deyo", preset="official", diversity="grad", lr=0.01, exclude=None)
    for x in stream[:3]:
        adapted(x)
    adapted.cuda()
    assert not next(model.parameters()).is_cuda
    adapted.save(tmp_path / "state")
    back = polytta.load(tmp_path / "state", copy.deepcopy(model).cuda())
    for x in stream[3:]:
        assert torch.allclose(adapted(x.cuda()), back(x.cuda()))
    frozen = adapted.freeze("ensemble")
    assert torch.allclose(frozen(stream[0].cuda()), adapted.predict(stream[0].cuda()))


def test_bfloat16_autocast_stays_finite_and_close() -> None:
    model = small_model("layer", dtype=torch.float32, confidence=4.0).cuda()
    stream = [x.cuda() for x in small_stream(10, 4, dtype=torch.float32)]
    # Not SVGD: its repulsion of nearby particles divides by their squared distance and magnifies any rounding.
    for diversity in ("none", "kl", "grad"):
        outputs = []
        for enabled in (False, True):
            adapted = polytta.adapt(model, "tent", diversity=diversity, lr=1e-3, exclude=None)
            with torch.autocast("cuda", torch.bfloat16, enabled=enabled):
                outputs.append(torch.stack([adapted(x) for x in stream]))
            assert adapted.theta.dtype == torch.float32
        assert (outputs[0].exp() - outputs[1].exp()).abs().max() <= 0.05, diversity


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_a_model_on_another_device_than_the_current_one() -> None:
    model, stream = small_model("layer"), small_stream(8, 5)
    reference = polytta.adapt(model, Tent(), engine="loop", lr=0.01)
    adapted = polytta.adapt(copy.deepcopy(model).to("cuda:1"), Tent(), lr=0.01)
    for x in stream:
        assert (adapted(x.to("cuda:1")).cpu() - reference(x)).abs().max() <= 1e-5
    assert torch.cuda.current_device() == 0
