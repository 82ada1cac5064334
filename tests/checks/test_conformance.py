"""Every method in every engine passes the shipped checks, on every kind of normalization."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from polytta.checks import CHECKS, Case, check_method
from polytta.checks.networks import KINDS
from polytta.methods import EATA, SAR, DeYO, Method, Norm, Source, Tent
from polytta.methods.base import Context, Pass, Selection, State

# Thresholds under which about half of the checks' samples are selected; the defaults would select almost none.
METHODS: list[Method] = [
    Source(),
    Norm(),
    Tent(),
    EATA(redundancy=0.9),
    SAR(),
    DeYO(entropy_threshold=0.8, plpd_threshold=-0.2),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("particles", [1, 3])
@pytest.mark.parametrize("model", KINDS)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_method_conforms(method: Method, model: str, particles: int, check: object) -> None:
    check(Case(model, arguments={"method": method, "particles": particles}))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_engines_agree_after_twenty_steps_with_five_particles(method: Method) -> None:
    for model in KINDS:
        case = Case(model, steps=20, batch=4, arguments={"method": method, "particles": 5})
        next(check for check in CHECKS if check.__name__ == "engines_agree")(case)


@dataclass(frozen=True)
class Leaky(Tent):
    """A faulty method: it looks at other particles' predictions."""

    name: ClassVar[str] = "leaky"

    def select(self, context: Context, made: Pass, state: State) -> tuple[Selection, State]:
        selection, state = super().select(context, made, state)
        confident = made.logits.detach().amax(dim=-1)
        return Selection.of(selection.mask & (confident >= confident.mean(dim=0) - 1e-12)), state


@dataclass(frozen=True)
class Forgetful(Tent):
    """A faulty method: it keeps something outside its state."""

    name: ClassVar[str] = "forgetful"
    seen: ClassVar[list[int]] = []

    def select(self, context: Context, made: Pass, state: State) -> tuple[Selection, State]:
        self.seen.append(1)
        everything = torch.ones(made.logits.shape[:2], dtype=torch.bool)
        return Selection.of(everything, weight=torch.full(everything.shape, float(len(self.seen)))), state


@pytest.mark.parametrize("method", [Leaky(), Forgetful()], ids=lambda method: method.name)
def test_checks_catch_faulty_methods(method: Method) -> None:
    with pytest.raises(AssertionError):
        check_method(method)
