"""Any base, any diversity, any optimizers, any views, any K: all of it conforms, in every engine."""

import pytest
import torch

import polytta
from polytta.checks import CHECKS, Case
from polytta.checks.networks import small_model, small_stream
from polytta.diversity import KL, SVGD, Diversifier, Grad, resolve_diversity
from polytta.errors import ConfigError
from polytta.methods import EATA, SAR, DeYO, Method, Tent
from polytta.optim import SGD, Adam, AdamW
from polytta.views import Views, unchanged

METHODS: list[Method] = [
    Tent(),
    EATA(redundancy=0.9),
    SAR(),
    DeYO(entropy_threshold=0.9, plpd_threshold=-0.2),
]
# Exact forms, whose directions are smooth functions of their inputs, so that engines can be compared closely.
DIVERSITIES: list[str | Diversifier] = [
    "none",
    KL(weight=0.1),
    SVGD(bandwidth="median"),
    Grad(solver="exact", scale="literal", weight=0.01),
]
OPTIMIZERS = {"same": SGD(lr=0.01), "mixed": [SGD(lr=0.01), Adam(lr=0.001), AdamW(lr=0.001)]}


# The others do not depend on what meets what; `tests/checks` runs them on every method.
ABOUT_COMBINATIONS = (
    "engines_agree",
    "equal_particles_stay_equal",
    "particles_spread",
    "reset_returns_to_source",
    "a_saved_stream_goes_on",
    "populations_do_not_meet",
)
assert set(ABOUT_COMBINATIONS) < {check.__name__ for check in CHECKS}


# One particle has nobody to keep away from: that much is seen without flips and with one optimizer.
POPULATIONS = [(3, views, optimizers) for views in ("none", "flips") for optimizers in OPTIMIZERS] + [
    (1, "none", "same")
]


@pytest.mark.parametrize(("particles", "views", "optimizers"), POPULATIONS)
@pytest.mark.parametrize("diversity", DIVERSITIES, ids=lambda d: d if isinstance(d, str) else d.name)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_combination_conforms(
    method: Method, diversity: str | Diversifier, optimizers: str, views: str, particles: int
) -> None:
    optimizer = OPTIMIZERS[optimizers]
    arguments = {
        "method": method,
        "diversity": diversity,
        "optimizer": optimizer,
        "views": views,
        "particles": particles,
        "lr": None,
    }
    case = Case("group", batch=4, steps=3, arguments=arguments)
    for check in CHECKS:
        if check.__name__ in ABOUT_COMBINATIONS:
            check(case)


@pytest.mark.parametrize("model", ["batch", "layer", "layer-token-first"])
@pytest.mark.parametrize("diversity", DIVERSITIES[1:], ids=lambda d: d.name)
def test_engines_agree_on_other_models(diversity: Diversifier, model: str) -> None:
    """Long enough, and with optimizers different enough, that particles come to select different samples."""
    agree = next(check for check in CHECKS if check.__name__ == "engines_agree")
    for method in METHODS:
        arguments = {"method": method, "diversity": diversity, "optimizer": ["sgd", "adam", "adamw"]}
        agree(Case(model, batch=5, steps=8, arguments=arguments))


@pytest.mark.parametrize("model", ["batch", "group", "layer"])
def test_engines_agree_with_the_defaults_in_single_precision(model: str) -> None:
    for diversity in ("kl", "svgd", "grad"):
        runs = []
        for engine in ("loop", "folded", "static"):
            adapted = polytta.adapt(
                small_model(model, dtype=torch.float32, confidence=4.0),
                DeYO(entropy_threshold=0.9, plpd_threshold=-0.2),
                diversity=diversity,
                lr=1e-3,
                exclude=None,
                engine=engine,
            )
            runs.append(torch.stack([adapted(x) for x in small_stream(10, 4, dtype=torch.float32)]))
        for run in runs[1:]:
            assert (run - runs[0]).abs().max() <= 1e-4, diversity


@pytest.mark.parametrize("diversity", ["kl", "grad"])
def test_a_pairwise_diversifier_leaves_one_particle_alone(diversity: str) -> None:
    runs = []
    for chosen in ("none", diversity, "svgd"):
        adapted = polytta.adapt(small_model("group"), "tent", particles=1, diversity=chosen, lr=0.02, exclude=None)
        for x in small_stream(4, 4):
            adapted(x)
        runs.append(adapted.theta)
    assert torch.allclose(runs[0], runs[1])
    assert torch.allclose(runs[0], runs[2])


def test_exact_symmetry_and_its_breaking() -> None:
    """Equal particles stay equal under every diversifier; shuffles or learning rates alone are enough to part them."""
    deyo = DeYO(entropy_threshold=0.9, plpd_threshold=-0.1)
    for diversity in ("none", "kl", "svgd", Grad(solver="exact")):
        for spread, shared, method, expected in (
            (0.0, True, deyo, "same"),
            # Coincident SVGD particles all feel the same mean gradient, whatever they drew.
            (0.0, False, deyo, "same" if diversity == "svgd" else "apart"),
            (0.2, True, deyo, "apart"),
            (0.0, False, Tent(), "same"),
            (0.2, False, Tent(), "apart"),
        ):
            adapted = polytta.adapt(
                small_model("group"), method, diversity=diversity, lr=0.02, lr_spread=spread, shared_noise=shared,
                exclude=None, engine="loop",
            )  # fmt: skip
            for x in small_stream(4, 6):
                adapted(x)
            same = bool((adapted.theta == adapted.theta[:1]).all())
            assert same is (expected == "same"), (diversity, spread, shared, method.name)


def test_reports_show_how_particles_differ() -> None:
    for diversity in ("svgd", "grad"):
        adapted = polytta.adapt(
            small_model("group"), DeYO(0.9, -0.2), diversity=diversity, lr=0.02, lr_spread=0.5, exclude=None
        )
        for x in small_stream(4, 6):
            adapted(x)
        report = adapted.last
        assert report.mutual_information > 0
        probs = report.logits.softmax(-1)
        entropy_of = lambda p: -(p * p.log()).sum(-1)  # noqa: E731
        expected = (entropy_of(probs.mean(0)) - entropy_of(probs).mean(0)).mean()
        assert report.mutual_information == pytest.approx(float(expected))
        assert (report.kernel is not None) is (diversity == "svgd")
        assert (report.input_gradient_cosine is not None) is (diversity == "grad")
    assert -1 <= report.input_gradient_cosine <= 1


@pytest.mark.parametrize(
    ("diversity", "message"),
    [
        ("stein", "diversity: got 'stein'; allowed are"),
        (KL(weight=-0.1), "allowed are finite weight >= 0"),
        (KL(samples="some"), "allowed are 'selected' and 'all'"),
        (SVGD(bandwidth=0.0), "allowed are finite numbers > 0 and 'median'"),
        (SVGD(bandwidth="mean"), "allowed are finite numbers > 0 and 'median'"),
        (SVGD(kernel="laplace"), "kernel 'rbf' or 'over_h'"),
        (SVGD(anchor=-1.0), "allowed is anchor >= 0"),
        (Grad(weight=-1.0), "allowed is a finite weight >= 0"),
        (Grad(form="angle"), r"form='angle'\); allowed are"),
        (Grad(solver="magic"), r"solver='magic'\); allowed are"),
    ],
)
def test_bad_values_get_one_clear_sentence(diversity: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve_diversity(diversity)


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
def test_a_view_of_which_nothing_is_kept_adds_nothing(engine: str) -> None:
    """At batch size 1 a changed image often fails the filter that the image itself passes."""
    views = Views((unchanged, torch.zeros_like))  # an empty image is the same when shuffled, so its PLPD is 0
    method = DeYO(entropy_threshold=0.999, plpd_threshold=0.0)
    adapted = polytta.adapt(small_model("group"), method, diversity="grad", views=views, engine=engine, exclude=None)
    alone = polytta.adapt(small_model("group"), method, diversity="grad", engine=engine, exclude=None)
    for x in small_stream(8, 1):
        assert torch.equal(adapted(x), alone(x))
    assert min(adapted.totals.stepped) > 0
    assert torch.allclose(adapted.theta, alone.theta)
