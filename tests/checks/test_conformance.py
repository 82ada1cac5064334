"""Every method in every engine passes the shipped checks, on every kind of normalization."""

import pytest

from polytta.checks import CHECKS, Case
from polytta.checks.networks import KINDS
from polytta.methods import EATA, MEMO, SAR, DeYO, Method, Norm, Source, Tent

# Thresholds under which about half of the checks' samples are selected; the defaults would select almost none.
METHODS: list[Method] = [
    Source(),
    Norm(),
    Tent(),
    EATA(redundancy=0.9),
    SAR(),
    DeYO(entropy_threshold=0.8, plpd_threshold=-0.2),
    MEMO(copies=2),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("particles", [1, 3])
@pytest.mark.parametrize("model", KINDS)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_method_conforms(method: Method, model: str, particles: int, check: object) -> None:
    check(Case(model, arguments={"method": method, "particles": particles}))


@pytest.mark.parametrize("method", METHODS[2:6], ids=lambda method: method.name)
def test_engines_agree_after_twenty_steps_with_five_particles(method: Method) -> None:
    for model in KINDS:
        case = Case(model, steps=20, batch=4, arguments={"method": method, "particles": 5})
        next(check for check in CHECKS if check.__name__ == "engines_agree")(case)
