"""Grad where every particle looks through a lens of its own: by the image they share, lens and network together."""

import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

import polytta
from polytta.adapter import Adapted
from polytta.checks import CHECKS, Case
from polytta.checks.networks import small_model, small_stream
from polytta.diversity import Grad, Independent
from polytta.engine.context import BatchContext
from polytta.errors import ConfigError
from polytta.methods import MEMO, SAR, DeYO, Method, Tent
from polytta.optim import SGD
from polytta.roles import Objective, Selection, entropy
from polytta.views import View, farther, horizontal_flip, sharper, unchanged, vertical_flip

LENSES = (horizontal_flip, farther, sharper)
DEYO = DeYO(entropy_threshold=0.9, plpd_threshold=-0.2)
METHODS: list[Method] = [Tent(), SAR(), DEYO]
LR, K, B = 0.01, 3, 6


@dataclass
class Written:
    """The objective of one batch in plain Python: a network, a lens and a copy of the batch per particle."""

    adapted: Adapted
    x: Tensor
    form: str
    scale: str
    weight: float = 0.3

    def __post_init__(self) -> None:
        # In training mode a BatchNorm takes statistics of the batch.
        self.network = copy.deepcopy(self.adapted.source_network).train()

    def logits(self, theta: Tensor, k: int, x: Tensor) -> Tensor:
        with sdpa_kernel([SDPBackend.MATH]):
            return functional_call(self.network, self.adapted.layout.named(theta[k]), (LENSES[k](x),))

    def direction(self, at: Tensor, selection: Selection) -> Tensor:
        theta, weight = at.detach().requires_grad_(), selection.weight
        kept = [row.nonzero().flatten().tolist() for row in selection.mask]
        own, slopes = [], []
        for k in range(K):
            x = self.x.clone().requires_grad_()
            losses = entropy(self.logits(theta, k, x)) * (1 if weight is None else weight[k])
            total = sum((losses[b] for b in kept[k]), torch.zeros((), dtype=x.dtype))
            own.append(total / max(len(kept[k]), 1))
            slopes.append(torch.autograd.grad(total, x, create_graph=True)[0] if kept[k] else torch.zeros_like(x))
        omega = torch.zeros((), dtype=self.x.dtype)
        for i, j in itertools.permutations(range(K), 2):
            both = sorted(set(kept[i]) & set(kept[j]))
            for b in both:
                omega = omega + self.alike(slopes[i][b].flatten(), slopes[j][b].flatten()) / len(both)
        descent = torch.autograd.grad(sum(own), theta, retain_graph=True)[0]
        apart = self.weight * K * torch.autograd.grad(omega / (K * (K - 1)), theta)[0]
        if self.scale == "share":
            apart = apart / apart.norm(dim=1, keepdim=True) * self.weight * descent.norm(dim=1, keepdim=True)
        return descent + apart

    def alike(self, g: Tensor, h: Tensor) -> Tensor:
        return {"dot": g @ h, "l2": -(g - h).square().sum(), "cosine": g @ h / (g.norm() * h.norm())}[self.form]


def adapter(kind: str, method: Method, diversity: Grad | str, **more: object) -> Adapted:
    """Three lenses, plain steps at one rate."""
    arguments = {"particles": K, "lenses": LENSES, "optimizer": SGD(momentum=0.0), "lr": LR, "lr_spread": 0.0, **more}
    return polytta.adapt(small_model(kind), method, diversity=diversity, exclude=None, **arguments)


def drifted(kind: str, method: Method, diversity: Grad, **more: object) -> Adapted:
    """Particles that have come apart."""
    adapted = adapter(kind, method, diversity, **more)
    for x in small_stream(3, B):
        adapted(x)
    return adapted


def as_if_independent(adapted: Adapted, x: Tensor) -> Selection:
    """What the method selects where nobody asks for input gradients and images go through lenses beforehand."""
    step = adapted._session._ready(x)
    parts = replace(step.squads[0].parts, diversifier=Independent())
    context = BatchContext(step.engine, parts, adapted.theta, x.unsqueeze(0), torch.tensor(adapted.totals.steps))
    return parts.method.select(context, context.passes()[0], {})[0]


@pytest.mark.parametrize(
    ("form", "scale"), [("dot", "share"), ("dot", "literal"), ("l2", "share"), ("cosine", "share")]
)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
def test_a_step_is_what_second_derivatives_by_the_shared_image_say(
    kind: str, method: Method, form: str, scale: str
) -> None:
    adapted, x = drifted(kind, method, Grad(form=form, scale=scale, solver="exact")), small_stream(1, B, seed=7)[0]
    written, theta = Written(adapted, x, form, scale), adapted.theta.clone()
    selection = as_if_independent(adapted, x)
    wanted = written.direction(theta, selection)
    if isinstance(method, SAR):
        theta_above = theta + method.rho * wanted / wanted.norm(dim=1, keepdim=True)
        again = torch.stack([written.logits(theta_above, k, x) for k in range(K)])
        still = selection.mask & (entropy(again) < method.entropy_threshold * torch.tensor(5.0).log())
        wanted = written.direction(theta_above, Selection.of(still))
    adapted(x)
    assert min(adapted.last.selected[method.filters[-1]]) > 0
    got = (theta - adapted.theta) / LR
    assert float((got - wanted).norm() / wanted.norm()) <= 1e-9


def directions(kind: str, dtype: torch.dtype, method: Method, form: str, lenses: tuple[View, ...]) -> list[Tensor]:
    """By second derivatives, and by differences."""
    found, x = [], small_stream(1, B, seed=7, dtype=dtype)[0]
    adapted = polytta.adapt(
        small_model(kind, dtype=dtype, confidence=4.0), method, particles=3, lenses=lenses, lr=0.02, lr_spread=0.5,
        exclude=None, diversity=Grad(),
    )  # fmt: skip
    for batch in small_stream(4, B, dtype=dtype):
        adapted(batch)
    for solver in ("exact", "fast"):
        step, diversifier = adapted._session._ready(x), Grad(form=form, solver=solver, scale="literal")
        parts = replace(step.squads[0].parts, diversifier=diversifier)
        context = BatchContext(step.engine, parts, adapted.theta, x.unsqueeze(0), torch.tensor(99))
        lesson = method.learn(context, context.passes(), {})
        objective = Objective(
            context.theta, context.source, lesson.terms, lesson.penalty, context.again, K, 1, step.engine.rounding
        )
        found.append(diversifier.direction(objective, objective.losses()))
    return found


@pytest.mark.parametrize("form", ["dot", "l2", "cosine"])
@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 2e-3)], ids=["double", "single"]
)
def test_a_difference_of_shared_images_is_close_to_the_derivative(
    kind: str, form: str, dtype: torch.dtype, tolerance: float
) -> None:
    exact, fast = directions(kind, dtype, DEYO, form, LENSES)
    assert float((fast - exact).norm() / exact.norm()) <= tolerance
    assert not torch.allclose(exact, directions(kind, dtype, DEYO, form, (unchanged,))[0])


def test_a_mirror_that_the_network_cannot_see_changes_nothing() -> None:
    """Mean pooling and a mirrored kernel: gradients by the shared image are those of an unmirrored particle.

    Taken of what each particle sees, they would be each other's mirror image, and not alike.
    """
    model = small_model("group")
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 4:
                parameter.copy_((parameter + parameter.flip(-1)) / 2)
    runs = []
    for lenses in ("none", [unchanged, horizontal_flip, unchanged]):
        adapted = polytta.adapt(
            model, Tent(), particles=3, lenses=lenses, diversity=Grad(solver="exact"), lr=0.02, exclude=None
        )
        for x in small_stream(4, B):
            adapted(x)
        runs.append(adapted)
    assert torch.allclose(runs[0].theta, runs[1].theta, atol=1e-9)
    assert runs[0].last.input_gradient_cosine == pytest.approx(runs[1].last.input_gradient_cosine, abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "particles", "views"),
    [("batch", 3, "none"), ("group", 3, "flips"), ("group", 5, "none"), ("layer", 3, "none")],
)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_grad_through_lenses_conforms(method: Method, kind: str, particles: int, views: str) -> None:
    arguments = {"method": method, "particles": particles, "views": views, "lenses": "optics"}
    exact = Case(kind, 4, 3, {**arguments, "diversity": Grad(solver="exact", scale="literal", weight=0.01)})
    fast = Case(kind, 4, 3, {**arguments, "diversity": Grad()})
    for check in CHECKS:
        if check.__name__ in ("engines_agree", "populations_do_not_meet", "particles_spread"):
            check(exact)
        if check.__name__ in ("a_saved_stream_goes_on", "reset_returns_to_source", "broken_images_do_no_harm"):
            check(exact)
            check(fast)
        # A transformer's attention has other bits where it is to be differentiated twice.
        if check.__name__ == "forward_answers_what_predict_says":
            check(fast)


@pytest.mark.parametrize("particles_at_once", [None, 2])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_engines_and_populations_agree_by_differences_too(method: Method, particles_at_once: int | None) -> None:
    streams = [small_stream(3, 4, seed=seed) for seed in (3, 4)]
    arguments = {"particles": 5, "lenses": [*LENSES, *LENSES][:5], "diversity": "grad", "lr": LR, "exclude": None}
    apart = []
    for seed, stream in zip((3, 4), streams, strict=True):
        adapted = polytta.adapt(small_model("group"), method, seed=seed, engine="loop", **arguments)
        for x in stream:
            adapted(x)
        apart.append(adapted.theta)
    for engine in ("loop", "folded", "static"):
        together = polytta.adapt(
            small_model("group"), method, seed=[3, 4], populations=2, engine=engine,
            particles_at_once=particles_at_once, **arguments,
        )  # fmt: skip
        for batches in zip(*streams, strict=True):
            together(torch.stack(batches))
        assert (together.theta - torch.cat(apart)).abs().max() <= 1e-7


@pytest.mark.parametrize("solver", ["exact", "fast"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_equal_lenses_are_as_images_seen_beforehand(method: Method, solver: str) -> None:
    one, twice, none = (
        adapter("group", method, Grad(solver=solver), lenses=lenses) for lenses in ([farther], [farther] * 3, "none")
    )
    for x in small_stream(4, B):
        expected = none(farther(x))
        assert torch.equal(one(x), expected)
        assert torch.equal(twice(x), expected)
    assert torch.equal(one.theta, none.theta)
    assert torch.equal(twice.theta, none.theta)


def test_methods_see_what_particles_see_and_diversifiers_what_they_share() -> None:
    adapted = adapter("group", Tent(), "grad", views=[unchanged, vertical_flip])
    x = small_stream(1, B)[0]
    step = adapted._session._ready(x)
    context = BatchContext(step.engine, step.squads[0].parts, adapted.theta, x.unsqueeze(0), torch.tensor(0))
    for one, view in zip(context.passes(), (unchanged, vertical_flip), strict=True):
        assert torch.equal(one.x, torch.stack([lens(view(x)) for lens in LENSES]))
        assert torch.equal(one.images, torch.stack([view(x)] * K))
        assert one.images.is_leaf
        for again in (context.forward(one, grad=True), context.forward(context.forward(one), x=one.x, grad=True)):
            assert again.images is one.images
            assert torch.equal(again.x, one.x)
            assert torch.equal(again.logits, one.logits)
        moved = context.again(one, one.images.detach() + 1, torch.ones(K, B, dtype=torch.bool))
        assert torch.equal(moved.x, torch.stack([lens(view(x) + 1) for lens in LENSES]))
        own = context.forward(one, x=one.x.detach().flip(-1), grad=True)
        assert own.images is own.x


def test_a_method_that_makes_images_of_its_own_runs_too() -> None:
    adapted = adapter("group", MEMO(copies=2), "grad")
    for x in small_stream(2, 3):
        assert adapted(x).isfinite().all()
    assert min(adapted.totals.stepped) == 2


@torch.no_grad()
def in_private(x: Tensor) -> Tensor:
    return x.flip(-1)


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    @once_differentiable
    def backward(ctx: object, slope: Tensor) -> Tensor:
        return 2 * slope


def only_once(x: Tensor) -> Tensor:
    return _Once.apply(x)


@pytest.mark.parametrize("lens", [in_private, torch.round, torch.zeros_like, lambda x: x.detach().clone()])
@pytest.mark.parametrize("solver", ["exact", "fast"])
def test_a_lens_without_derivative_gets_one_clear_sentence(lens: View, solver: str) -> None:
    adapted, x = (
        adapter("group", Tent(), Grad(solver=solver), lenses=[unchanged, lens, unchanged]),
        small_stream(1, 4)[0],
    )
    which = "no second derivative" if solver == "exact" else "no derivative"
    for ask in (adapted, adapted.predict):
        with pytest.raises(ConfigError, match=rf"^lenses: got .*{which}; allowed with diversity 'grad' are .*\.$"):
            ask(x)
    assert adapted.totals.steps == 0
    adapter("group", Tent(), Grad(solver=solver), lenses=[lens])(x)
    adapter("group", Tent(), "kl", lenses=[unchanged, lens, unchanged])(x)


def test_second_derivatives_are_asked_of_a_lens_where_they_are_taken() -> None:
    x = small_stream(1, 4)[0]
    assert adapter("group", Tent(), Grad(solver="fast"), lenses=[unchanged, only_once, unchanged])(x).isfinite().all()
    with pytest.raises(ConfigError, match=r"only_once.*no second derivative"):
        adapter("group", Tent(), Grad(solver="exact"), lenses=[unchanged, only_once, unchanged])(x)


@pytest.mark.parametrize(
    "lens", [lambda x: x - x.mean(dim=(1, 2, 3), keepdim=True), lambda x: x.clamp(-1, 1), lambda x: x.tanh()]
)
@pytest.mark.parametrize("solver", ["exact", "fast"])
def test_a_lens_with_a_derivative_is_taken(lens: Callable[[Tensor], Tensor], solver: str) -> None:
    adapted = adapter("group", Tent(), Grad(solver=solver), lenses=[unchanged, lens, unchanged])
    for x in small_stream(2, 4):
        assert adapted(x).isfinite().all()
    assert min(adapted.totals.stepped) == 2


@pytest.mark.parametrize("solver", ["exact", "fast"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_step_reads_nothing_back(method: Method, solver: str) -> None:
    """Else it could not be recorded as a CUDA graph."""
    adapted = adapter("group", method, Grad(solver=solver), engine="static", views="mirror")
    x = small_stream(1, 4)[0]
    adapted(x)
    step, called = adapted._session._ready(x), set()

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            called.add(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    with Watch():
        step(adapted._session.state, x.unsqueeze(0))
    assert "replication_pad2d" in called, "nothing was watched"
    assert not {"_local_scalar_dense", "nonzero"} & called
