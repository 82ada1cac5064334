"""What newcomers get wrong, written down once each: the shipped checks must refuse it, and say what is wrong."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import pytest
import torch
from torch import Tensor

import polytta
from polytta.checks import CHECKS, Case, check_diversifier, check_method, check_part
from polytta.checks.networks import small_model
from polytta.diversity import KL, Independent, Objective
from polytta.errors import ConfigError
from polytta.methods import EATA, Context, Lesson, Pass, Selection, State, Tent, Term, entropy
from polytta.optim import SGD, Rows, Slots


@dataclass(frozen=True)
class LooksAtOthers(Tent):
    """Selects by other particles' predictions."""

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        selection, state = super().select(context, forward_pass, state)
        confident = forward_pass.logits.detach().amax(dim=-1)
        return Selection.of(selection.mask & (confident >= confident.mean(dim=0) - 1e-12)), state


@dataclass(frozen=True)
class RemembersElsewhere(Tent):
    """Keeps something outside its state."""

    seen: ClassVar[list[int]] = []

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        self.seen.append(1)
        everything = torch.ones(forward_pass.logits.shape[:2], dtype=torch.bool)
        return Selection.of(everything, weight=torch.full(everything.shape, float(len(self.seen)))), state


@dataclass(frozen=True)
class SharesItsMemory(EATA):
    """Keeps one running prediction for all particles."""

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        selection, state = super().select(context, forward_pass, state)
        mean = state["mean_probs"]
        return selection, {"mean_probs": mean.mean(dim=0, keepdim=True).expand_as(mean)}


@dataclass(frozen=True)
class KeepsItsLossToItself(Tent):
    """Differentiates by itself and hands over a loss that has no predictions in it."""

    def learn(self, context: Context, passes: Sequence[Pass], state: State) -> Lesson:
        first = passes[0]
        slope = torch.autograd.grad(entropy(first.logits).mean(dim=1).sum(), first.theta, retain_graph=True)[0]
        silent = Pass(first.theta, first.x, first.logits.detach())
        fixed = (first.theta * slope.detach()).sum(dim=1, keepdim=True).expand(-1, first.x.shape[1])
        return Lesson((Term((silent,), Selection.everything(first), lambda _: fixed),), state)


@dataclass(frozen=True)
class Crowded(Independent):
    """Pulls every particle towards the mean of all there are, other populations' included."""

    def direction(self, objective: Objective, losses: Tensor) -> Tensor:
        theta = objective.theta.detach()
        return objective.gradient(losses.sum()) + 0.1 * (theta - theta.mean(dim=0))


@dataclass(frozen=True)
class ComparesSilently(KL):
    """Holds predictions against each other and does not say so."""

    weight: float = 0.5

    @property
    def compares_predictions_on(self) -> Literal["nothing", "selected", "all"]:
        return "nothing"


@dataclass(frozen=True)
class StepsTogether(SGD):
    """Moves every particle along the mean direction."""

    def step(self, rows: Rows) -> tuple[Tensor, Slots]:
        mean = rows.direction.mean(dim=0, keepdim=True).expand_as(rows.direction)
        return rows.theta - rows.lr * mean, {"momentum": rows.state["momentum"]}


WRONG = {
    "method looks at other particles": (
        {"method": LooksAtOthers()},
        "particles_without_interaction_are_alone",
        "particle 0 is .* from the same method run alone",
    ),
    "method remembers outside its state": (
        {"method": RemembersElsewhere()},
        "equal_seeds_give_equal_predictions",
        "two runs with the same seed differ",
    ),
    "method shares its memory": (
        {"method": SharesItsMemory(redundancy=0.9)},
        "particles_without_interaction_are_alone",
        "'mean_probs' mixes particles|run alone",
    ),
    "method keeps its loss to itself": (
        {"method": KeepsItsLossToItself()},
        "diversity_reaches_the_method",
        "diversity has no effect",
    ),
    "diversifier mixes populations": (
        {"method": Tent(), "diversity": Crowded()},
        "populations_do_not_meet",
        "population 0 is .* from the same population run by itself",
    ),
    "optimizer moves particles together": (
        {"method": Tent(), "optimizer": StepsTogether()},
        "particles_without_interaction_are_alone",
        "particle 0 is .* from the same method run alone",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_check_for_it_says_what_is_wrong(wrong: str) -> None:
    arguments, name, says = WRONG[wrong]
    check = next(check for check in CHECKS if check.__name__ == name)
    with pytest.raises(AssertionError, match=says):
        check(Case("group", arguments={"particles": 3, **arguments}))


@pytest.mark.parametrize("wrong", WRONG)
def test_the_whole_suite_refuses_it(wrong: str) -> None:
    arguments = WRONG[wrong][0]
    with pytest.raises(AssertionError):  # noqa: PT012
        if "diversity" in arguments:
            check_diversifier(arguments["diversity"])
        if "optimizer" in arguments:
            check_part("optimizer", arguments["optimizer"])
        check_method(arguments["method"])


@dataclass(frozen=True)
class BelowTheMean(Tent):
    """Holds every row against all rows."""

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        top = forward_pass.logits.detach().amax(dim=-1)
        return Selection.of(top < top.mean()), state


@dataclass(frozen=True)
class OfOneRow(Tent):
    """Forgets that there are particles."""

    def select(self, context: Context, forward_pass: Pass, state: State) -> tuple[Selection, State]:
        return Selection.of(forward_pass.logits[0, :, 0] > 0), state


@pytest.mark.parametrize(
    ("check", "part", "says"),
    [
        (check_method, BelowTheMean(), r"method: got BelowTheMean\(\), which fails populations_do_not_meet .* mixed"),
        (check_method, OfOneRow(), r"method: got OfOneRow\(\), which fails .*; allowed is one that passes it \("),
        (check_diversifier, Crowded(), r"diversity: got Crowded\(.*\), which fails populations_do_not_meet"),
        (partial(check_part, "optimizer"), StepsTogether(), r"optimizer: got StepsTogether\(.*\), which fails"),
    ],
)
def test_failures_name_the_part_and_what_it_must_do(check: Callable[[object], None], part: object, says: str) -> None:
    with pytest.raises(AssertionError, match=says) as found:
        check(part)
    assert "\n" not in str(found.value)


def test_a_diversifier_that_compares_silently_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"engine '\w+' is .* from the loop"):
        check_diversifier(ComparesSilently())


def test_a_method_for_the_interface_of_before_is_refused() -> None:
    class Old(Tent):
        def update(self, context: Context, state: State) -> None:
            """What methods wrote once."""

    with pytest.raises(ConfigError, match=r"got Old with update\(context, state\), which is not called any more"):
        polytta.adapt(small_model("group"), Old())
