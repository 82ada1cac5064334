"""Methods that compare images with text pass the shipped checks, on a small zero-shot classifier."""

from collections.abc import Sequence

import pytest
from torch import Tensor

from polytta.checks import CHECKS, Case
from polytta.checks.conformance import Check
from polytta.methods import TDA, TPT, WATTP, WATTS, CLIPArTT, DeYO, DiffTPT, Method, Tent
from polytta.methods.tpt import crop
from polytta.roles.noise import Noise


def generator(x: Tensor, noise: Noise) -> Sequence[Tensor]:
    return [x.flip(-1), crop(x, noise)]


METHODS: list[Method] = [
    WATTS(steps=1, rounds=2),
    WATTP(steps=1, rounds=2),
    CLIPArTT(classes=2, steps=2),
    TPT(views=3, share=0.5),
    DiffTPT(views=2, share=0.5, steps=2, generator=generator),
    TDA(),
]
OTHER_FORMS: list[Method] = [
    WATTS(steps=1, rounds=1, order="own", form="online"),
    CLIPArTT(classes=2, steps=1, form="online"),
    TDA(views=generator),
]
# What depends on how a method looks and remembers; the rest was seen on its usual form.
ABOUT_FORMS = [
    check
    for check in CHECKS
    if check.__name__
    in ("forward_answers_what_predict_says", "engines_agree", "a_saved_stream_goes_on", "populations_do_not_meet")
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("particles", [1, 3])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_method_conforms(method: Method, particles: int, check: Check) -> None:
    check(Case("clip", batch=4, steps=4, arguments={"method": method, "particles": particles}))


@pytest.mark.parametrize("check", ABOUT_FORMS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("method", OTHER_FORMS, ids=lambda method: method.name)
def test_other_forms_conform(method: Method, check: Check) -> None:
    check(Case("clip", batch=4, steps=4, arguments={"method": method, "particles": 3}))


@pytest.mark.parametrize("diversity", ["kl", "svgd", "grad"])
@pytest.mark.parametrize("check", ABOUT_FORMS, ids=lambda check: check.__name__)
def test_diversified_watt_conforms(diversity: str, check: Check) -> None:
    method = WATTS(steps=1, rounds=1, order="own")
    arguments = {"method": method, "particles": 3, "diversity": diversity, "views": "flips", "optimizer": "adam"}
    check(Case("clip", batch=4, steps=3, arguments=arguments))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("method", [Tent(), DeYO(entropy_threshold=0.8, plpd_threshold=-0.2)], ids=lambda one: one.name)
def test_several_steps_and_episodes_conform(method: Method, check: Check) -> None:
    for arguments in ({"steps": 3}, {"steps": 2, "episodic": True}):
        check(Case("group", batch=4, steps=4, arguments={"method": method, "particles": 3, **arguments}))
