"""What a step takes from a lesson, and what it reports."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.diversity import KL, Grad
from polytta.errors import ConfigError
from polytta.methods import MEMO, SAR, Context, Lesson, Pass, Start, State, Tent


def test_input_gradient_cosine_is_that_of_the_second_look() -> None:
    adapted = polytta.adapt(small_model("group"), SAR(0.8), diversity=Grad(), lr=0.01, exclude=None)
    for x in small_stream(4, 6):
        adapted(x)
        assert adapted.last.input_gradient_cosine <= 1.0 + 1e-9


def test_nothing_left_at_the_second_look_is_a_loss_of_zero_in_every_engine() -> None:
    losses = []
    for engine in ("loop", "folded", "static"):
        adapted = polytta.adapt(
            small_model("group"), SAR(0.2, rho=0.5), particles=1, lr=0.01, exclude=None, engine=engine
        )
        own = []
        for x in small_stream(30, 1, seed=3):
            adapted(x)
            kept = adapted.last.selected["perturbed entropy"]
            assert kept != (0,) or adapted.last.loss == (0.0,)
            own.append(adapted.last.loss[0])
        losses.append(own)
    assert losses[1] == pytest.approx(losses[0], abs=1e-9)
    assert losses[2] == pytest.approx(losses[0], abs=1e-9)


@dataclass(frozen=True)
class Anchored(SAR):
    """SAR with a penalty on the way from the source."""

    def penalty(self, context: Context, theta: Tensor) -> Tensor:
        return 100 * (theta - context.source).square().sum(dim=1)


def test_a_penalty_counts_at_the_perturbed_point_too() -> None:
    drift = []
    for method in (SAR(0.9), Anchored(0.9)):
        adapted = polytta.adapt(small_model("group"), method, particles=1, lr=2e-3, exclude=None)
        for x in small_stream(8, 6):
            adapted(x)
        drift.append(float((adapted.theta - adapted.source).norm()))
    assert drift[1] < 0.8 * drift[0]


@dataclass(frozen=True)
class Follows(Tent):
    """Tent with something to say after the step."""

    spoils: bool = False
    forgets: bool = False

    def init(self, start: Start) -> State:
        return {"average": start.theta.clone(), "count": torch.zeros_like(start.theta[:, :1])}

    def learn(self, context: Context, passes: Sequence[Pass], state: State) -> Lesson:
        lesson = super().learn(context, passes, {**state, "count": state["count"] + 1})

        def after(theta: Tensor) -> tuple[Tensor, State]:
            wanted = torch.full_like(theta, torch.nan) if self.spoils else (theta + context.source) / 2
            return wanted, {"other": theta} if self.forgets else {"average": theta}

        return replace(lesson, after_step=after)


def test_what_follows_the_step_is_taken_over_beside_what_the_lesson_says() -> None:
    adapted = polytta.adapt(small_model("group"), Follows(), lr=0.05, exclude=None)
    for x in small_stream(3, 6):
        adapted(x)
    state = adapted.state_dict()
    assert state["method_count"].tolist() == [[3.0]] * 3
    assert torch.allclose(adapted.theta, (state["method_average"] + adapted.source) / 2)


def test_nothing_non_finite_comes_in_after_the_step_either() -> None:
    spoilt = polytta.adapt(small_model("group"), Follows(spoils=True), lr=0.05, exclude=None)
    plain = polytta.adapt(small_model("group"), Tent(), lr=0.05, exclude=None)
    for x in small_stream(3, 6):
        spoilt(x)
        plain(x)
    assert torch.equal(spoilt.theta, plain.theta)


def test_a_state_with_other_names_is_refused_by_name() -> None:
    adapted = polytta.adapt(small_model("group"), Follows(forgets=True), lr=0.05, exclude=None)
    with pytest.raises(ConfigError, match="method: got a state with 'other' missing or new"):
        adapted(small_stream(1, 6)[0])


def test_the_weight_of_kl_does_not_depend_on_the_number_of_copies() -> None:
    pushes = []
    for copies in (2, 12):
        runs = []
        for diversity in ("none", KL(weight=5.0)):
            method = MEMO(copies=copies, form="online", strength=0.05)
            adapted = polytta.adapt(small_model("group"), method, diversity=diversity, lr=0.02, exclude=None)
            for x in small_stream(4, 6):
                adapted(x)
            runs.append(adapted.theta)
        pushes.append(float((runs[0] - runs[1]).norm()))
    assert pushes[1] < 2 * pushes[0]
