"""Evidence is what its formula says, and knows who has collapsed."""

import math

import pytest
import torch
from torch import Tensor

import polytta
from polytta.adapter import Adapted
from polytta.aggregate import Evidence, chain, evidence, turns
from polytta.checks.networks import small_model, small_stream
from polytta.views import fineness

LABELS = torch.arange(400) % 4
GOOD = 6.0 * torch.nn.functional.one_hot(LABELS, 4).double()


def observed(*particles: Tensor, anchors: list[int] | None = None, fine: Tensor | None = None) -> dict[str, Tensor]:
    logits = torch.stack(particles)
    state: dict[str, Tensor] = evidence.begin(len(particles), logits.shape[-1], logits, by_fineness=True)
    rows = torch.arange(len(particles)) if anchors is None else torch.tensor(anchors)
    detail = torch.zeros(1, logits.shape[1]) if fine is None else fine
    for start in range(0, logits.shape[1], 4):
        known = evidence.with_anchors(state, rows)
        state = evidence.observe(known, logits[:, start : start + 4], detail[:, start : start + 4])
    return dict(evidence.with_anchors(state, rows))


def collapsed() -> Tensor:
    logits = torch.zeros_like(GOOD)
    logits[:, 0] = 20.0
    return logits


def test_sure_and_balanced_beats_unsure_and_beats_collapsed() -> None:
    particles = (GOOD, 0.1 * GOOD, collapsed())
    state = observed(*particles)
    scores = evidence.scores(state)
    assert scores.argmax() == 0
    assert scores.argmin() == 2
    answer = Evidence().combine(torch.stack(particles).unsqueeze(0), state, torch.zeros(1, 400))[0]
    assert torch.equal(answer.argmax(1), LABELS)
    assert torch.allclose(answer.exp().sum(1), torch.ones(400, dtype=torch.float64))


def test_the_first_batch_is_answered_by_what_it_says_itself() -> None:
    """But not by how classes come, which would take a batch of one class for a stream of one."""
    logits = torch.stack([0.1 * GOOD, GOOD])
    state: dict[str, Tensor] = evidence.begin(2, 4, logits, by_fineness=True)
    known = evidence.with_anchors(state, torch.arange(2))
    seen = evidence.observe(known, logits, torch.zeros(1, 400))
    asked = evidence.with_batch(known, seen)
    assert torch.allclose(Evidence().weights(known, torch.zeros(1, 400), 2), torch.full((1, 400, 2), 0.5).double())
    assert (Evidence().weights(asked, torch.zeros(1, 400), 2)[..., 1] > 0.99).all()
    assert all(torch.equal(asked[name], known[name]) for name in known if name.startswith("turn_"))


def test_a_few_images_of_a_kind_tell_who_suits_that_kind() -> None:
    """Of a batch with eight kinds of images, eight of each, two particles are surer of one kind each."""
    kinds = torch.linspace(-2.75, 0.75, 8).repeat(8).unsqueeze(0)
    ones, others = kinds[0] == kinds.min(), kinds[0] == kinds.max()
    # Every kind has images of all classes.
    logits = GOOD[:64].reshape(8, 8, 4).transpose(0, 1).reshape(64, 4).div(4).repeat(2, 1, 1)
    logits[0, ones] *= 2
    logits[1, others] *= 2
    known = evidence.with_anchors(evidence.begin(2, 4, logits, by_fineness=True), torch.arange(2))
    asked = evidence.with_batch(known, evidence.observe(known, logits, kinds))
    weights = Evidence().weights(asked, kinds, 2)[0]
    assert (weights[ones, 0] > 0.9).all()
    assert (weights[others, 1] > 0.9).all()
    assert torch.allclose(weights[~(ones | others)], torch.tensor(0.5).double())


@pytest.mark.parametrize("method", ["deyo", "roid"])
def test_a_prediction_is_what_the_first_step_answers(method: str) -> None:
    """ROID's answers are corrected by the batch, and evidence is of what it saw before."""
    adapted = polytta.adapt(small_model("group"), method, exclude=None, particles=2, pace=(0.0, 0.1),
                            lenses=("unchanged", "sharper"), aggregate="evidence")  # fmt: skip
    for x in small_stream(3, 8):
        told = adapted.predict(x)
        assert torch.allclose(adapted(x), told, atol=1e-6)


def test_means_run_up_to_the_horizon() -> None:
    logits = torch.randn(2, 40, 4, dtype=torch.float64)
    state, probs = observed(*logits), logits.softmax(-1)
    assert torch.allclose(state["mean_probs"], probs.mean(dim=1))
    assert torch.allclose(state["mean_entropy"], -(probs * probs.log()).sum(-1).mean(dim=1))
    assert torch.allclose(state["agreement"], (probs[0] * probs[1]).sum(-1).mean().expand(2))


def test_beyond_the_horizon_the_past_fades_by_a_thousandth_an_image() -> None:
    before, after = torch.tensor([[[4.0, 0.0]]]), torch.tensor([[[0.0, 4.0]]])
    state: dict[str, Tensor] = evidence.begin(1, 2, before)
    for _ in range(3):
        state = evidence.observe(state, before.expand(1, 500, 2), torch.zeros(1, 500))
    assert float(state["images"]) == 1000
    for _ in range(200):
        state = evidence.observe(state, after, torch.zeros(1, 1))
    kept = 0.999**200
    expected = kept * before.softmax(-1)[0, 0] + (1 - kept) * after.softmax(-1)[0, 0]
    assert torch.allclose(state["mean_probs"][0], expected, atol=1e-5)


def share(mean: tuple[float, ...]) -> float:
    return -sum(p * math.log(p) for p in mean) / math.log(len(mean))


def test_scores_weights_and_mixture_are_what_the_formula_says() -> None:
    """Written out once more, number by number: two anchors and a learner on the first, two classes."""
    means, unsure, agreed = [(0.5, 0.5), (0.9, 0.1), (0.7, 0.3)], [0.3, 0.2, 0.1], [0.6, 0.5, 0.4]
    state = {
        "mean_probs": torch.tensor(means, dtype=torch.float64),
        "mean_entropy": torch.tensor(unsure, dtype=torch.float64) * math.log(2),
        "agreement": torch.tensor(agreed, dtype=torch.float64),
        "images": torch.tensor(64.0, dtype=torch.float64),
        "fine_probs": torch.zeros(3, 19, 2, dtype=torch.float64),
        **{f"fine_{name}": torch.zeros(3, 19, dtype=torch.float64) for name in ("entropy", "agreement", "images")},
        **turns.begin(3, 2, torch.zeros(1, dtype=torch.float64)),
        **chain.begin(3, 2, torch.zeros(1, dtype=torch.float64)),
        "anchor": torch.tensor([0, 1, 0]),
    }
    everybody = tuple((2 * means[0][c] + means[1][c]) / 3 for c in (0, 1))
    counts = 2 * share(everybody) ** 4
    looking = [counts * share(means[n]) - unsure[n] for n in (0, 1)]
    learning = 2 * (share(means[2]) - share(means[0])) + 0.6 * (agreed[2] - agreed[0])
    own = [looking[0], looking[1], looking[0] + learning]
    assert torch.allclose(evidence.scores(state), torch.tensor(own, dtype=torch.float64))
    # After 64 images evidence counts for half, and a quarter is left of the doubt in who is no anchor.
    raw = [math.exp(30 * 0.5 * score - doubt) for score, doubt in zip(own, (0, 0, 3 / 4), strict=True)]
    weights = [value / sum(raw) for value in raw]
    given = [(0.7, 0.3), (0.2, 0.8), (0.4, 0.6)]
    product = [math.prod(given[n][c] ** weights[n] for n in range(3)) for c in (0, 1)]
    logits = torch.tensor(given, dtype=torch.float64).log().reshape(1, 3, 1, 2)
    answer = Evidence().combine(logits, state, torch.zeros(1, 1)).exp()[0, 0]
    assert torch.allclose(answer, torch.tensor([value / sum(product) for value in product], dtype=torch.float64))


def test_sureness_gained_by_learning_is_worth_nothing() -> None:
    unlearnt, learnt = observed(0.3 * GOOD, GOOD, anchors=[0, 0]), observed(0.3 * GOOD, 0.3 * GOOD, anchors=[0, 0])
    alone = [evidence.scores({**state, "agreement": torch.zeros(2)}) for state in (unlearnt, learnt)]
    assert torch.allclose(*alone, atol=1e-6)


def test_on_a_stream_of_one_class_spreading_answers_is_no_merit() -> None:
    """A learner that answers at random there has more balance than its anchor, which sees one class, and is right."""
    one_class = torch.zeros_like(GOOD)
    one_class[:, 1] = 6.0
    state = observed(one_class, one_class, GOOD, anchors=[0, 1, 0])
    scores = evidence.scores(state)
    assert scores[2] < scores[0]


def test_images_of_like_detail_have_evidence_of_their_own() -> None:
    """Two particles, each of which sees one half of the images; over all images they are equal."""
    fine = torch.where(torch.arange(400) % 8 < 4, -1.0, 1.0).unsqueeze(0)
    half = fine[0].unsqueeze(1) > 0
    first, second = torch.where(half, GOOD, 0.05 * GOOD), torch.where(half, 0.05 * GOOD, GOOD)
    state = observed(first, second, fine=fine)
    overall = evidence.scores(state)
    assert torch.allclose(overall[0], overall[1])
    weights = evidence.weights(state, torch.tensor([[1.0, -1.0]]))
    assert weights[0, 0, 0] > 0.8
    assert weights[0, 1, 1] > 0.8
    unknown = evidence.weights(state, torch.tensor([[-3.0]]))
    assert torch.allclose(unknown, torch.full_like(unknown, 0.5))


def test_the_images_nearby_need_not_count() -> None:
    """A sorted stream, of which every particle is unsure: those nearby say what it is, unless nobody asks them."""
    sorted_labels = LABELS.sort().values
    logits = 1.5 * torch.nn.functional.one_hot(sorted_labels, 4).double().expand(1, 2, -1, -1)
    state = observed(*logits[0])
    asked = Evidence(nearby=False).combine(logits, state, torch.zeros(1, 400))
    assert torch.allclose(asked, logits[:, 0].log_softmax(dim=-1))
    answer, after = Evidence().answer(logits, state, torch.zeros(1, 400))
    assert (answer.exp().amax(dim=-1) > asked.exp().amax(dim=-1) + 0.2)[:, 100:].float().mean() > 0.9
    assert Evidence(nearby=False).answer(logits, state, torch.zeros(1, 400))[1] == {}
    assert after.keys() == {name for name in state if name.startswith("chain_")}


def test_nobody_has_a_veto() -> None:
    logits = torch.tensor([[[0.0, 1000.0]], [[20.0, 0.0]]], dtype=torch.float64).unsqueeze(0)
    answer = Evidence().combine(logits, {}, torch.zeros(1, 1)).exp()[0, 0]
    assert torch.allclose(answer, torch.tensor([0.5, 0.5], dtype=torch.float64), atol=1e-6)


def test_one_particle_answers_as_it_is() -> None:
    logits = torch.tensor([[[[0.0, 1000.0]]]], dtype=torch.float64)
    assert torch.equal(Evidence().combine(logits, {}, torch.zeros(1, 1)), logits[:, 0].log_softmax(-1))


def test_who_has_collapsed_starts_over_from_the_best_of_its_kind() -> None:
    state = observed(0.3 * GOOD, GOOD, GOOD, collapsed(), anchors=[0, 1, 0, 0])
    restart = Evidence().restarts(state, 1)
    assert restart is not None
    assert restart.rows.tolist() == [False, False, False, True]
    assert int(restart.donors[3]) == 2
    assert Evidence(restart=False).restarts(state, 1) is None


def test_statistics_are_judged_against_stored_ones_and_never_start_over() -> None:
    """Who never learns but goes by the batch may be far behind its anchor; there is nothing to go back to."""
    state = {**observed(GOOD, collapsed(), anchors=[0, 0]), "twin": torch.tensor([0, 1])}
    scores = evidence.scores(state)
    assert scores[1] < scores[0] - 0.25
    restart = Evidence().restarts(state, 1)
    assert restart is not None
    assert not restart.rows.any()


def batches(labels: Tensor) -> dict[str, Tensor]:
    """Two particles that are right, the second by the statistics of batches of 20."""
    logits = 6.0 * torch.nn.functional.one_hot(labels, 4).double().expand(2, -1, -1)
    anchors, twins = torch.tensor([0, 0]), torch.tensor([0, 1])
    state: dict[str, Tensor] = evidence.begin(2, 4, logits, by_fineness=True)
    for start in range(0, len(labels), 20):
        known = evidence.with_anchors(state, anchors, twins)
        state = evidence.observe(known, logits[:, start : start + 20], torch.zeros(1, 20))
    return dict(evidence.with_anchors(state, anchors, twins))


def test_batches_of_one_class_are_seen_without_labels_and_those_by_chance_are_not() -> None:
    shuffled = LABELS[torch.randperm(400, generator=torch.Generator().manual_seed(0))]
    in_turn, by_chance = batches(LABELS.sort().values), batches(shuffled)
    assert (evidence.sameness(in_turn) > 0.95).all()
    assert (evidence.sameness(by_chance) < 0.05).all()
    gap = [evidence.scores(state)[0] - evidence.scores(state)[1] for state in (in_turn, by_chance)]
    assert gap[0] > 0.9
    assert abs(gap[1]) < 0.05
    slowing = [Evidence().slowing(state, 1) for state in (in_turn, by_chance)]
    assert slowing[0] is not None
    assert slowing[1] is not None
    assert (slowing[0] < 0.01).all()
    assert (slowing[1] > 0.9).all()


def by_the_batch(labels: Tensor, images: int) -> Tensor:
    """Scores of one who names two classes of four, and of its like that is right by the statistics of the batch."""
    biased = 3.0 * torch.nn.functional.one_hot(labels // 2 * 2, 4).double()
    right = 6.0 * torch.nn.functional.one_hot(labels, 4).double()
    logits, anchors, twins = torch.stack([biased, right]), torch.tensor([0, 0]), torch.tensor([0, 1])
    state: dict[str, Tensor] = evidence.begin(2, 4, logits, by_fineness=True)
    for start in range(0, images, 20):
        known = evidence.with_anchors(state, anchors, twins)
        state = evidence.observe(known, logits[:, start : start + 20], torch.zeros(1, 20))
    return evidence.scores(evidence.with_anchors(state, anchors, twins))


def test_statistics_of_the_batch_are_a_way_to_look_where_classes_come_by_chance() -> None:
    shuffled = LABELS[torch.randperm(400, generator=torch.Generator().manual_seed(0))]
    gains = [float(scores[1] - scores[0]) for scores in (by_the_batch(shuffled, 20), by_the_batch(shuffled, 400))]
    # Surer of single images, which counts as far as it is known how classes come.
    assert gains[1] > gains[0] + 0.3
    in_turn = by_the_batch(LABELS.sort().values, 400)
    assert in_turn[1] < in_turn[0] - 0.3


def test_a_shift_that_leaves_few_classes_to_name_is_not_taken_for_classes_in_turn() -> None:
    """One of two anchors says the first class of all images after the shift; the other is right."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(4, (800,), generator=generator)
    right = 6.0 * torch.nn.functional.one_hot(labels, 4).double()
    told = right.clone()
    told[400:] = 6.0 * torch.nn.functional.one_hot(torch.zeros(400, dtype=torch.int64), 4).double()
    state = observed(right, told)
    assert float(turns.sameness(state)[1]) > 0.2
    assert float(evidence.sameness(state).max()) < 0.05


def test_populations_tell_apart_how_their_classes_come() -> None:
    shuffled = LABELS[torch.randperm(400, generator=torch.Generator().manual_seed(0))]
    alone = [batches(labels) for labels in (LABELS.sort().values, shuffled)]
    joined = {
        name: torch.cat([one[name] for one in alone]) if value.dim() else value for name, value in alone[0].items()
    }
    for name in ("anchor", "twin"):
        joined[name] = torch.cat([alone[0][name], alone[1][name] + 2])
    assert torch.equal(evidence.sameness(joined, 2), torch.cat([evidence.sameness(one) for one in alone]))
    assert torch.equal(evidence.scores(joined, 2), torch.cat([evidence.scores(one) for one in alone]))


def test_a_few_images_restart_nobody() -> None:
    state = observed(GOOD[:8], collapsed()[:8], anchors=[0, 0])
    restart = Evidence().restarts(state, 1)
    assert restart is not None
    assert not restart.rows.any()


def hot(**changes: object) -> Adapted:
    arguments = {"method": "tent", "axes": "product", "lenses": ["unchanged", "horizontal_flip"], "pace": [0, 30.0]}
    return polytta.adapt(small_model("group"), exclude=None, aggregate=Evidence(**changes), **arguments)  # type: ignore[arg-type]


def test_a_collapsed_particle_of_a_real_stream_is_back_at_half_its_pace() -> None:
    adapted, left = hot(), hot(restart=False)
    for x in small_stream(60, 6):
        adapted(x), left(x)
    restarts = adapted.totals.restarts
    assert restarts[:2] == (0, 0)
    assert max(restarts) > 0
    assert max(left.totals.restarts) == 0
    paces = adapted.settings.pace
    assert paces == tuple(pace / 2**count for pace, count in zip((0, 0, 30.0, 30.0), restarts, strict=True))


def test_an_adapter_weights_by_what_it_saw_until_then() -> None:
    adapted = polytta.adapt(small_model("group"), lr=[0, 0.05], axes="product", exclude=None, aggregate="evidence")
    stream = small_stream(4, 6)
    adapted(stream[0])
    for x in stream[1:]:
        known, detail = evidence.with_anchors(adapted.evidence, *adapted.anchors), fineness(x).unsqueeze(0)
        logits = adapted.particles_log_probs(x)
        asked = evidence.with_batch(known, evidence.observe(known, logits, detail))
        expected = Evidence().combine(logits.unsqueeze(0), asked, detail)[0]
        assert torch.allclose(adapted(x), expected)
    assert float(adapted.evidence["images"]) == 24


@pytest.fixture
def quick_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"NO_WEIGHT": 0.09, "SOME_WEIGHT": 0.2, "SLEEP_AFTER": 20, "SLEEP_EVERY": 4}.items():
        monkeypatch.setattr(evidence, name, value)


@pytest.mark.usefixtures("quick_sleep")
def test_who_has_no_weight_stops_learning_and_goes_on_bit_for_bit(tmp_path: object) -> None:
    adapted, stream = polytta.adapt(small_model("layer"), exclude=None), small_stream(30, 6)
    awake = polytta.adapt(small_model("layer"), preset="recommended", exclude=None, aggregate=Evidence(sleep=False))
    slept: set[int] = set()
    for number, x in enumerate(stream):
        before = adapted.theta
        adapted(x), awake(x)
        resting = sorted(adapted._session.asleep)
        slept |= set(resting)
        assert torch.equal(adapted.theta[resting], before[resting])
        assert adapted.last is not None
        assert not any(adapted.last.backward_by_particle[n] for n in resting)
        if number == 17:
            adapted.save(f"{tmp_path}/state")
    assert slept - adapted.config.never_learn
    assert not awake._session.asleep
    assert adapted.totals.backward_samples < awake.totals.backward_samples
    resumed = polytta.load(f"{tmp_path}/state", small_model("layer"))
    for x in stream[18:]:
        resumed(x)
    assert torch.equal(resumed.theta, adapted.theta)
