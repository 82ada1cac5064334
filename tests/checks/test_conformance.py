"""Every method in every engine passes the shipped checks, on every kind of normalization."""

import pytest

from polytta.checks import CHECKS, Case
from polytta.checks.conformance import Check
from polytta.checks.networks import KINDS
from polytta.methods import EATA, MEMO, ROID, SAR, DeYO, Method, Norm, RDumb, Source, Tent

# Thresholds under which about half of the checks' samples are selected; the defaults would select almost none.
METHODS: list[Method] = [
    Source(),
    Norm(),
    Tent(),
    EATA(redundancy=0.9),
    SAR(),
    DeYO(entropy_threshold=0.8, plpd_threshold=-0.2),
    MEMO(copies=2),
    ROID(),
    RDumb(redundancy=0.9, reset_every=3),
]


# Ways to normalize differ in how passes are folded; all else is checked on three of them.
ABOUT_PASSES = ("engines_agree", "particles_without_interaction_are_alone", "populations_do_not_meet")
WHAT = [
    pytest.param(model, check, particles, id=f"{model}-{check.__name__}-{particles}")
    for model in KINDS
    for check in CHECKS
    for particles in (1, 3)
    # One particle is a population like any other, so one kind of network shows it.
    if (model in ("batch", "group", "layer") or check.__name__ in ABOUT_PASSES) and (particles == 3 or model == "group")
]


@pytest.mark.parametrize(("model", "check", "particles"), WHAT)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_method_conforms(method: Method, model: str, check: Check, particles: int) -> None:
    check(Case(model, arguments={"method": method, "particles": particles}))


@pytest.mark.parametrize("method", METHODS[2:6], ids=lambda method: method.name)
def test_engines_agree_after_twenty_steps_with_five_particles(method: Method) -> None:
    for model in KINDS:
        case = Case(model, steps=20, batch=4, arguments={"method": method, "particles": 5})
        next(check for check in CHECKS if check.__name__ == "engines_agree")(case)


# What a window can spoil.
ABOUT_WINDOWS = (
    *("forward_answers_what_predict_says", "predict_changes_nothing", "engines_agree", "reset_returns_to_source"),
    *("a_saved_stream_goes_on", "broken_images_do_no_harm", "state_does_not_grow"),
    *("particles_without_interaction_are_alone", "populations_do_not_meet"),
)


@pytest.mark.parametrize(
    "check", [one for one in CHECKS if one.__name__ in ABOUT_WINDOWS], ids=lambda check: check.__name__
)
@pytest.mark.parametrize("particles", [1, 3])
@pytest.mark.parametrize("model", ["batch", "group"])
@pytest.mark.parametrize(
    "method",
    [ROID(window=3, reset_every=3), RDumb(entropy_threshold=0.95, redundancy=0.99, window=3, reset_every=3)],
    ids=lambda method: method.name,
)
def test_windows_of_single_images_conform(method: Method, model: str, particles: int, check: Check) -> None:
    check(Case(model, batch=1, steps=10, arguments={"method": method, "particles": particles}))
