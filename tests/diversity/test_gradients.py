"""Directions of every diversifier against autograd through the objective as it is written, pair by pair."""

import dataclasses
import itertools

import pytest
import torch
from torch import Tensor

import polytta
from polytta.adapter import Adapted
from polytta.checks.networks import small_model, small_stream
from polytta.diversity import KL, SVGD, Diversifier, Grad, Independent
from polytta.engine.context import BatchContext
from polytta.guard import usable_direction
from polytta.methods import DeYO, Method, Tent
from polytta.roles import Context, Objective, Pass, Selection, State

K = 3
METHOD = DeYO(entropy_threshold=0.6, plpd_threshold=-0.1)


def population(kind: str, engine: str = "folded", dtype: torch.dtype = torch.float64, **model: float) -> Adapted:
    """Particles that have drifted apart for a few steps."""
    adapted = polytta.adapt(
        small_model(kind, dtype=dtype, **model),
        METHOD,
        particles=K,
        lr=0.02,
        lr_spread=0.5,
        exclude=None,
        engine=engine,
    )
    for x in small_stream(4, 6, dtype=dtype):
        adapted(x)
    return adapted


def at_work(adapted: Adapted, x: Tensor, **changes: object) -> BatchContext:
    """A batch at work, some parts of the step exchanged."""
    step = adapted._session._ready(x)
    parts = dataclasses.replace(step.squads[0].parts, **changes)
    return BatchContext(step.engine, parts, adapted.theta, x.unsqueeze(0), torch.tensor(99))


def direction(adapted: Adapted, diversifier: Diversifier, x: Tensor, method: Method = METHOD) -> Tensor:
    context = at_work(adapted, x, diversifier=diversifier, method=method)
    lesson = method.learn(context, context.passes(), {})
    objective = Objective(
        context.theta, context.source, lesson.terms, lesson.penalty, context.again, K, 1, context.engine.rounding
    )
    return usable_direction(diversifier.direction(objective, objective.losses()), lesson.learners)[0]


class Written:
    """The objective, particle by particle and pair by pair, on the loop engine."""

    def __init__(self, adapted: Adapted, x: Tensor) -> None:
        self.theta = adapted.theta.detach().requires_grad_()
        context = at_work(adapted, x, diversifier=Grad(solver="exact"))
        self.selection, _ = METHOD.select(context, context.passes()[0], {})
        self.images = [x.clone().requires_grad_() for _ in range(K)]
        engine = polytta.particles.LoopEngine(
            adapted.source_network, adapted.layout, adapted._session.findings, "batch"
        )
        with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
            self.logits = [engine.outputs(self.theta[k : k + 1], self.images[k].unsqueeze(0))[0][0] for k in range(K)]
        self.kept = [self.selection.mask[k].nonzero().flatten().tolist() for k in range(K)]

    def summed_loss(self, k: int) -> Tensor:
        log_probs = self.logits[k].log_softmax(1)
        entropies = -(log_probs.exp() * log_probs).sum(1)
        return sum((self.selection.weight[k, b] * entropies[b] for b in self.kept[k]), torch.zeros(()))

    def losses(self) -> Tensor:
        return sum(self.summed_loss(k) / max(len(self.kept[k]), 1) for k in range(K))

    def omega_kl(self) -> Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for i, j in itertools.permutations(range(K), 2):
            for b in self.kept[i]:
                p, q = self.logits[i][b].softmax(0), self.logits[j][b].softmax(0)
                total = total - (p * (p.clamp(min=1e-6).log() - q.clamp(min=1e-6).log())).sum() / len(self.kept[i])
        return total / (K * (K - 1))

    def omega_grad(self, form: str) -> Tensor:
        gradients = [torch.autograd.grad(self.summed_loss(k), self.images[k], create_graph=True)[0] for k in range(K)]
        total = torch.zeros((), dtype=torch.float64)
        for i, j in itertools.permutations(range(K), 2):
            both = sorted(set(self.kept[i]) & set(self.kept[j]))
            for b in both:
                g, h = gradients[i][b].flatten(), gradients[j][b].flatten()
                value = {"dot": g @ h, "l2": -(g - h).square().sum(), "cosine": g @ h / (g.norm() * h.norm())}[form]
                total = total + value / len(both)
        return total / (K * (K - 1))

    def gradient(self, value: Tensor) -> Tensor:
        return torch.autograd.grad(value, self.theta)[0]


def relative(got: Tensor, expected: Tensor) -> float:
    return float((got - expected).norm() / expected.norm())


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
class TestAgainstTheWrittenObjective:
    def test_kl(self, kind: str, engine: str) -> None:
        adapted, x = population(kind, engine), small_stream(1, 6, seed=7)[0]
        written = Written(adapted, x)
        expected = written.gradient(written.losses() + K * 0.5 * written.omega_kl())
        assert relative(direction(adapted, KL(weight=0.5), x), expected) <= 1e-6

    @pytest.mark.parametrize("form", ["dot", "l2", "cosine"])
    def test_grad_exact(self, kind: str, engine: str, form: str) -> None:
        adapted, x = population(kind, engine), small_stream(1, 6, seed=7)[0]
        written = Written(adapted, x)
        expected = written.gradient(written.losses() + K * 0.3 * written.omega_grad(form))
        got = direction(adapted, Grad(form=form, solver="exact", scale="literal"), x)
        assert relative(got, expected) <= 1e-6


@pytest.mark.parametrize("form", ["dot", "l2", "cosine"])
@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 1e-3)], ids=["double", "single"]
)
def test_grad_fast_equals_exact(kind: str, form: str, dtype: torch.dtype, tolerance: float) -> None:
    adapted, x = population(kind, dtype=dtype, confidence=4.0), small_stream(1, 6, seed=7, dtype=dtype)[0]
    directions = [
        direction(adapted, Grad(form=form, solver=solver, scale="literal"), x) for solver in ("exact", "fast")
    ]
    assert relative(directions[1], directions[0]) <= tolerance


def test_share_makes_lambda_mean_the_same_whatever_the_size_of_the_input_gradient() -> None:
    adapted, x = population("group"), small_stream(1, 6, seed=7)[0]
    plain = direction(adapted, Independent(), x)
    term = direction(adapted, Grad(weight=0.3), x) - plain
    moving = plain.norm(dim=1) > 0
    assert torch.allclose(term.norm(dim=1)[moving], 0.3 * plain.norm(dim=1)[moving], rtol=1e-5)
    literal = direction(adapted, Grad(weight=0.3, scale="literal"), x) - plain
    for row in moving.nonzero().flatten():
        assert torch.cosine_similarity(term[row], literal[row], dim=0) == pytest.approx(1.0, abs=1e-5)


def mean_alignment(adapted: Adapted, theta: Tensor, x: Tensor) -> float:
    trial = polytta.adapt(adapted.source_network, METHOD, particles=K, lr=0.0, exclude=None, diversity=Grad(weight=0.0))
    trial(x)
    trial.load_state_dict({**trial.state_dict(), "theta": theta})
    written = Written(trial, x)
    return float(written.omega_grad("dot").detach())


@pytest.mark.parametrize("kind", ["batch", "group", "layer"])
def test_a_step_with_grad_lowers_alignment_and_the_printed_sign_raises_it(kind: str) -> None:
    adapted, x = population(kind), small_stream(1, 6, seed=7)[0]
    moved = {}
    for name, diversifier in {
        "none": Independent(),
        "penalise": Grad(weight=0.5),
        "literal": Grad(weight=0.5, sign="literal"),
    }.items():
        moved[name] = mean_alignment(adapted, adapted.theta - 1e-5 * direction(adapted, diversifier, x), x)
    assert moved["penalise"] < moved["none"] < moved["literal"]


def test_kl_options() -> None:
    adapted, x = population("group"), small_stream(1, 6, seed=7)[0]
    plain = direction(adapted, Independent(), x)
    terms = [direction(adapted, d, x) - plain for d in (KL(), KL(detach=True), KL(samples="all"))]
    assert not torch.allclose(terms[0], terms[1])
    assert not torch.allclose(terms[0], terms[2])


def test_kl_cannot_run_away() -> None:
    logits = torch.tensor([[[60.0, 0.0, 0.0]], [[0.0, 60.0, 0.0]]], requires_grad=True)
    divergence = KL().divergences(logits)
    assert float(divergence.detach().max()) <= 13.9
    assert bool(torch.autograd.grad(divergence.sum(), logits)[0].abs().max() < 1e-3), "clamped pairs are not pushed on"


def test_literal_objective_divides_by_k() -> None:
    moved = []
    for objective in ("scaled", "literal"):
        adapted = polytta.adapt(
            small_model("group"), METHOD, particles=K, diversity=KL(), objective=objective, exclude=None, lr=0.02
        )
        adapted(small_stream(1, 6)[0])
        moved.append(adapted.theta - adapted.source)
    assert float(moved[0].norm()) > 0
    assert torch.allclose(moved[1] * K, moved[0])


@dataclasses.dataclass(frozen=True)
class FirstParticleOnly(Tent):
    """Selects every sample for the first particle and none for the others."""

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        mask = torch.zeros(forward_pass.logits.shape[:2], dtype=torch.bool)
        mask[0] = True
        return Selection.of(mask), state


def test_a_particle_that_kept_nothing_is_a_fixed_reference() -> None:
    """KL: it does not move; Grad: without a shared sample there is no term; SVGD: its gradient counts as 0."""
    adapted, x, method = population("group"), small_stream(1, 6, seed=7)[0], FirstParticleOnly()
    plain = direction(adapted, Independent(), x, method)
    assert plain[0].any()
    assert not plain[1:].any()
    pushed = direction(adapted, KL(weight=1.0), x, method)
    assert not pushed[1:].any()
    assert not torch.equal(pushed[0], plain[0])
    for solver in ("exact", "fast"):
        assert torch.allclose(direction(adapted, Grad(solver=solver), x, method), plain)
    wide = direction(adapted, SVGD(bandwidth=1e6), x, method)
    assert torch.allclose(wide[0], plain[0], atol=1e-6)
    assert not direction(adapted, SVGD(bandwidth="median", anchor=0.1), x, method)[1:].any()


@dataclasses.dataclass(frozen=True)
class NotFlat(Method):
    """Learns from every image that is not all of one value."""

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        return Selection.of(forward_pass.x.detach().flatten(2).std(dim=2) > 0), state


@pytest.mark.parametrize("solver", ["exact", "fast"])
def test_a_view_of_which_nobody_keeps_anything_changes_nothing(solver: str) -> None:
    x = small_stream(1, 6, seed=7)[0]
    moved = []
    for views in ([], [torch.zeros_like]):
        model = small_model("group", dtype=torch.float64)
        adapted = polytta.adapt(
            model,
            NotFlat(),
            particles=K,
            diversity=Grad(solver=solver),
            views=[lambda x: x, *views],
            lr=0.02,
            exclude=None,
        )
        for batch in small_stream(3, 6, dtype=torch.float64):
            adapted(batch)
        adapted(x)
        moved.append(adapted.theta)
    assert torch.equal(*moved)
    assert not torch.equal(moved[0][0], moved[0][1])


def test_half_precision_takes_second_derivatives_because_differences_lose_their_digits() -> None:
    x = torch.zeros(1, 1, 3, 8, 8)
    assert not Grad().differentiates_twice(x)
    assert Grad().differentiates_twice(x.bfloat16())
    assert Grad().differentiates_twice(x.half())
    assert Grad(solver="exact").differentiates_twice(x)
    assert not Grad(solver="fast").differentiates_twice(x.half())
    with torch.autocast("cpu", torch.bfloat16):
        assert Grad().differentiates_twice(x)
