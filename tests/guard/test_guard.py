"""The guard: healthy streams as they were, collapse undone and written down, in every engine and after a resume."""

import json
import logging
from pathlib import Path

import pytest
import torch
from tests.dispatched import ON_THE_HOST, called_by
from torch import Tensor

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.data.bundled import load_cifar10_subset
from polytta.errors import ConfigError
from polytta.guard import ACTIONS, Default, Examiner, Strict, begin
from polytta.guard.health import COLLAPSED, WARN
from polytta.models import SourceModel, create

HOT = 0.5


@pytest.fixture(scope="module")
def residual() -> SourceModel:
    return create("bundled/cifar10_resnet_bn")


@pytest.fixture(scope="module")
def photographs(residual: SourceModel) -> tuple[Tensor, Tensor]:
    images = load_cifar10_subset()
    chosen = [images[n] for n in range(0, 2000, 5)]
    return residual.preprocessing([one[0] for one in chosen]), torch.tensor([int(one[1]) for one in chosen])


def one_learner(policy: Default, source: Tensor) -> Examiner:
    """Of one particle that nobody else looks like."""
    return Examiner(policy, source, torch.tensor([True]), torch.tensor([0]), weighed=torch.tensor([False]))


def drift(adapted: polytta.Adapted) -> Tensor:
    return (adapted.theta - adapted.source).norm(dim=1) / adapted.source.norm()


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "tent", "particles": 1},
        {"method": "deyo", "particles": 2},
        pytest.param({"preset": "recommended", "lenses": ["unchanged", "farther"]}, marks=pytest.mark.long),
    ],
)
def test_healthy_streams_are_answered_as_without_a_guard(
    settings: dict[str, object], residual: SourceModel, photographs: tuple[Tensor, Tensor]
) -> None:
    guarded, free = (polytta.adapt(residual.module, **settings, guard=guard) for guard in ("default", "off"))
    for number in range(3):
        x = photographs[0][16 * number : 16 * (number + 1)]
        x = x + 0.5 * torch.randn_like(x) * (number == 1)
        assert torch.equal(guarded(x), free(x))
    assert torch.equal(guarded.theta, free.theta)
    assert guarded.last is not None
    assert set(guarded.last.health) == {"ok"}
    assert not guarded.totals.actions


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
def test_a_particle_that_runs_away_is_shortened_then_starts_over_and_rests(engine: str) -> None:
    adapted = polytta.adapt(small_model("group"), "tent", lr=HOT, exclude=None, engine=engine)
    collapsed_at = []
    for number, x in enumerate(small_stream(12, 6), start=1):
        adapted(x)
        assert adapted.last is not None
        assert bool((drift(adapted) <= Default().drift + 1e-6).all())
        if "collapsed" in adapted.last.health:
            collapsed_at.append(number)
            row = adapted.last.health.index("collapsed")
            assert torch.equal(adapted.theta[row], adapted.source)
            assert float(adapted.learning_rates[row]) < HOT / 2
    assert collapsed_at, "the test needs a collapse"
    assert adapted.totals.actions["shortened"][0] > 0
    assert adapted.totals.collapses[0] == 1
    assert adapted.totals.actions["rests"][0] > 0


def test_engines_guard_alike() -> None:
    found = []
    for engine in ("folded", "static", "loop"):
        adapted = polytta.adapt(small_model("group"), "tent", lr=HOT, exclude=None, engine=engine)
        answers = [adapted(x) for x in small_stream(8, 6)]
        found.append((torch.stack(answers), adapted.totals.actions))
    for answers, actions in found[1:]:
        assert torch.allclose(answers, found[0][0], atol=1e-6)
        assert actions == found[0][1]


def test_a_guarded_step_that_acts_stays_on_the_device() -> None:
    adapted = polytta.adapt(small_model("group"), "tent", lr=HOT, exclude=None, engine="static")
    stream = small_stream(6, 6)
    for x in stream[:3]:
        adapted(x)
    step, state = next(iter(adapted._session._steps.values()))[0], adapted._session.state
    assert not called_by(lambda: step(state, stream[4].unsqueeze(0))) & ON_THE_HOST


def test_a_resumed_stream_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    settings = {"method": "tent", "lr": HOT / 4, "exclude": None}
    straight = polytta.adapt(small_model("group"), **settings)
    stream = small_stream(40, 6)
    halfway = polytta.adapt(small_model("group"), **settings)
    for x in stream[:15]:
        straight(x), halfway(x)
    halfway.save(tmp_path / "state")
    resumed = polytta.load(tmp_path / "state", small_model("group"))
    for x in stream[15:]:
        assert torch.equal(resumed(x), straight(x))
    assert resumed.totals.actions == straight.totals.actions
    assert straight.totals.collapses[0] > 0


def test_states_without_a_guard_and_with_another_one_load(tmp_path: Path) -> None:
    stream = small_stream(3, 6)
    free = polytta.adapt(small_model("group"), "tent", lr=1e-4, exclude=None, guard="off")
    free(stream[0])
    free.save(tmp_path / "free")
    guarded = polytta.load(tmp_path / "free", small_model("group"), guard="default")
    assert torch.equal(guarded(stream[1]), free(stream[1]))
    guarded.save(tmp_path / "guarded")
    for guard in ("off", {"name": "default", "snapshots": 1}):
        again = polytta.load(tmp_path / "guarded", small_model("group"), guard=guard)
        assert torch.equal(again.theta, guarded.theta)


def test_everything_is_written_down_once_per_event(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    adapted = polytta.adapt(small_model("group"), "tent", particles=1, lr=HOT, exclude=None)
    adapted.audit(tmp_path / "audit.jsonl")
    with caplog.at_level(logging.INFO, logger="polytta"):
        for x in small_stream(20, 6):
            adapted(x)
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [line["health"] for line in lines if "reset" in line["actions"]] == ["collapsed"]
    assert len(lines) == len(caplog.records) < 8
    assert {line["particle"] for line in lines} == {0}
    with pytest.raises(ConfigError, match="audit: got"):
        adapted.audit(tmp_path)


def test_answers_that_turned_are_seen_against_the_source_on_the_same_images() -> None:
    policy = Default(patience=8, drift=10.0, longest_step=10.0)
    source = torch.ones(6)
    theta = source.expand(3, -1).clone()
    memory = begin(policy, theta, 4)
    of_one_class, of_all = torch.zeros(8), torch.arange(8) % 4
    eye = 20 * torch.eye(4)
    learners, nobody = torch.tensor([False, True, True]), torch.zeros(3, dtype=torch.bool)
    look = Examiner(policy, source, learners, torch.tensor([0, 0, 0]), weighed=nobody)
    # Row 0 never learns. Row 1 says one class to images of all; row 2 what row 0 says, as healthy ones do.
    for source_says, verdicts in ((of_all, [0, 2, 0]), (of_one_class.long(), [0, 0, 0])):
        logits = torch.stack([eye[source_says], eye[of_one_class.long()], eye[source_says]])
        found = look(memory, theta, theta, logits, torch.tensor(1), nobody)
        assert found.verdict.tolist() == verdicts


def test_the_last_good_snapshot_is_gone_back_to_once() -> None:
    policy = Default(snapshot_every=2, rest=1)
    source = torch.ones(4)
    near, far = source + 0.001, source + 1.0
    memory = begin(policy, near.unsqueeze(0), 3)
    assert memory["snapshots"].shape == (1, 2, 4)
    assert begin(Default(snapshot_bytes=20), near.unsqueeze(0), 3)["snapshots"].shape == (1, 1, 4)
    examined, logits = one_learner(policy, source), torch.randn(1, 4, 3)

    def look(before: Tensor, after: Tensor) -> tuple[Tensor, list[int]]:
        nonlocal memory
        found = examined(memory, before.unsqueeze(0), after.unsqueeze(0), logits, torch.tensor(1), None)
        memory = found.memory
        return found.theta[0], found.verdict.tolist()

    for _ in range(2):
        assert look(near, near)[1] == [0]
    # Already out there, so that the step itself is short.
    assert torch.equal(look(far, far)[0], near)
    assert look(near, near + 0.001)[1] == [1], "it rests"
    assert torch.equal(look(far, far)[0], source), "the second time nobody trusts the snapshot"


def test_a_step_that_is_too_long_goes_as_far_as_allowed() -> None:
    policy, source = Default(), torch.ones(4)
    begun, wanted = source.unsqueeze(0), source.unsqueeze(0) + torch.tensor([0.0, 3.0, 0.0, 4.0])
    memory = begin(policy, begun, 3)
    found = one_learner(policy, source)(memory, begun, wanted, torch.randn(1, 4, 3), torch.tensor(1), None)
    allowed = policy.longest_step * source.norm()
    assert torch.allclose(found.theta[0] - source, allowed * torch.tensor([0.0, 0.6, 0.0, 0.8]), rtol=0, atol=1e-6)
    assert [name for bit, name in ACTIONS.items() if int(found.actions) & bit] == ["shortened"]


def test_who_gets_far_slowly_is_pulled_back_and_goes_on() -> None:
    policy, source = Default(), torch.ones(4)
    far = source * (1 + 1.01 * policy.drift)
    for age, verdict, action in ((127, COLLAPSED, "reset"), (128, WARN, "pulled back")):
        memory = begin(policy, far.unsqueeze(0), 3)
        memory["age"] += age
        there, logits = far.unsqueeze(0), torch.randn(1, 4, 3)
        found = one_learner(policy, source)(memory, there, there, logits, torch.tensor(1), None)
        assert found.verdict.tolist() == [verdict]
        assert [name for bit, name in ACTIONS.items() if int(found.actions) & bit] == [action]
        left = 0.0 if action == "reset" else 0.505 * policy.drift
        assert torch.allclose(found.theta[0], source * (1 + left), rtol=0, atol=1e-6)
        assert found.recovered.tolist() == [action == "reset"]
        assert found.memory["age"].tolist() == [0 if action == "reset" else age + 1]
        assert found.memory["rest"].tolist() == [policy.rest if action == "reset" else 0]


def test_everybody_starts_over_on_time() -> None:
    adapted = polytta.adapt(
        small_model("group"), "tent", lr=1e-3, exclude=None, guard={"name": "default", "reset_every": 3}
    )
    for number, x in enumerate(small_stream(6, 6), start=1):
        adapted(x)
        assert bool((drift(adapted) == 0).all()) == (number % 3 == 0)
    assert adapted.totals.actions["reset on time"] == (2, 2, 2)
    assert torch.equal(
        adapted.learning_rates, polytta.adapt(small_model("group"), "tent", lr=1e-3, exclude=None).learning_rates
    )


def test_gradients_are_clipped() -> None:
    plain, clipped = (
        polytta.adapt(small_model("group"), "tent", particles=1, lr=1e-3, exclude=None, guard=Default(clip=clip))
        for clip in (None, 1e-3)
    )
    x = small_stream(1, 6)[0]
    plain(x), clipped(x)
    moved = [float((one.theta - one.source).norm()) for one in (plain, clipped)]
    assert moved[1] == pytest.approx(1e-6, rel=1e-3)
    assert moved[0] > moved[1]


def test_an_absurd_rate_neither_breaks_a_particle_nor_goes_unsaid(caplog: pytest.LogCaptureFixture) -> None:
    adapted = polytta.adapt(small_model("group"), "tent", particles=1, lr=1e20, exclude=None)
    for x in small_stream(4, 6):
        answer = adapted(x)
    assert bool((answer.exp().amax(dim=1) > 0.2).any()), "uniform answers of a particle that is gone"
    assert "step 1: particle 0 is close to collapse (warn): a step was too long, and was shortened" in caplog.text


@pytest.mark.parametrize("method", ["tent", "source"])
def test_overflowing_answers_are_counted_and_told(method: str, caplog: pytest.LogCaptureFixture) -> None:
    model = small_model("group").float()
    with torch.no_grad():
        model.head.weight.sign_().mul_(3e38)
    adapted = polytta.adapt(model, method, particles=1, exclude=None)
    adapted(small_stream(1, 6)[0].float())
    assert adapted.last is not None
    assert adapted.last.broken == (6,)
    assert adapted.totals.broken == (6,)
    assert "6 answers not finite" in caplog.text


def test_batches_of_one_class_do_not_mislead_batch_statistics(
    residual: SourceModel, photographs: tuple[Tensor, Tensor]
) -> None:
    x, labels = photographs
    of_one = labels == 3
    right = {}
    for guard in ("off", "default"):
        adapted = polytta.adapt(residual.module, "norm", particles=1, guard=guard)
        predicted = adapted.predict(x[of_one])
        answer = adapted(x[of_one])
        assert torch.equal(predicted, answer)
        right[guard] = float((answer.argmax(dim=1) == 3).float().mean())
    source = polytta.adapt(residual.module, "source", particles=1)(x[of_one])
    assert right["off"] < 0.5, "the test needs a stream that misleads"
    assert right["default"] >= float((source.argmax(dim=1) == 3).float().mean()) - 0.02


def test_policies_say_what_is_allowed() -> None:
    model = small_model("group")
    assert polytta.adapt(model).config.guard == Default()
    assert polytta.adapt(model, guard="strict").config.guard == Strict()
    for wrong, said in (
        ({"name": "default", "drift": -1}, "guard: got drift=-1"),
        ({"name": "default", "snapshots": 1.5}, "guard: got snapshots=1.5"),
        ("none", "guard: got 'none'"),
        (7, "guard: got 7"),
    ):
        with pytest.raises(ConfigError, match=said):
            polytta.adapt(model, guard=wrong)
