import math

import torch

import polytta
from polytta.aggregate import Evidence, evidence
from polytta.checks.networks import small_model, small_stream


def observed(*particles: torch.Tensor) -> dict[str, torch.Tensor]:
    logits = torch.stack(particles)
    state = evidence.begin(len(particles), logits.shape[-1], logits)
    for start in range(0, logits.shape[1], 4):
        state = evidence.observe(state, logits[:, start : start + 4])
    return state


def test_sure_and_balanced_beats_unsure_and_beats_collapsed() -> None:
    labels = torch.arange(40) % 4
    good = 6.0 * torch.nn.functional.one_hot(labels, 4).float()
    unsure = 0.1 * good
    collapsed = torch.zeros(40, 4)
    collapsed[:, 0] = 20.0
    scores = evidence.scores(observed(good, unsure, collapsed))
    assert scores.argmax() == 0
    assert scores[2] < 0.01
    answer = Evidence().combine(torch.stack([good, unsure, collapsed]), observed(good, unsure, collapsed))
    assert torch.equal(answer.argmax(1), labels)
    assert torch.allclose(answer.exp().sum(1), torch.ones(40))


def test_scores_are_running_means_up_to_the_horizon() -> None:
    logits = torch.randn(2, 40, 4)
    state, probs = observed(*logits), logits.softmax(-1)
    assert torch.allclose(state["mean_probs"], probs.mean(dim=1))
    assert torch.allclose(state["mean_entropy"], -(probs * probs.log()).sum(-1).mean(dim=1))


def test_beyond_the_horizon_the_past_fades_by_a_thousandth_an_image() -> None:
    before, after = torch.tensor([[[4.0, 0.0]]]), torch.tensor([[[0.0, 4.0]]])
    state = evidence.begin(1, 2, before)
    for _ in range(3):
        state = evidence.observe(state, before.expand(1, 500, 2))
    assert float(state["images"]) == 1000
    for _ in range(200):
        state = evidence.observe(state, after)
    kept = 0.999**200
    expected = kept * before.softmax(-1)[0, 0] + (1 - kept) * after.softmax(-1)[0, 0]
    assert torch.allclose(state["mean_probs"][0], expected, atol=1e-5)


def test_weights_and_mixture_are_what_the_formula_says() -> None:
    """Written out once more, number by number: two particles, two classes."""
    means, entropies = [(0.5, 0.5), (0.9, 0.1)], [0.3, 0.2]
    state = {
        "mean_probs": torch.tensor(means, dtype=torch.float64),
        "mean_entropy": torch.tensor(entropies, dtype=torch.float64),
        "images": torch.tensor(100.0),
    }
    own = [2 * -sum(p * math.log(p) for p in mean) - h for mean, h in zip(means, entropies, strict=True)]
    assert torch.allclose(evidence.scores(state), torch.tensor(own, dtype=torch.float64))
    raw = [math.exp(5 * score / math.log(10)) for score in own]
    weights = [value / sum(raw) for value in raw]
    given = [(0.7, 0.3), (0.2, 0.8)]
    product = [given[0][c] ** weights[0] * given[1][c] ** weights[1] for c in (0, 1)]
    answer = Evidence().combine(torch.tensor(given, dtype=torch.float64).log().unsqueeze(1), state)
    assert torch.allclose(
        answer.exp()[0], torch.tensor([value / sum(product) for value in product], dtype=torch.float64)
    )


def test_nobody_has_a_veto() -> None:
    state = evidence.begin(2, 2, torch.zeros(1, dtype=torch.float64))
    logits = torch.tensor([[[0.0, 1000.0]], [[20.0, 0.0]]], dtype=torch.float64)
    answer = Evidence().combine(logits, state).exp()[0]
    assert torch.allclose(answer, torch.tensor([0.5, 0.5], dtype=torch.float64), atol=1e-6)


def test_an_adapter_weights_by_what_it_saw_before() -> None:
    adapted = polytta.adapt(
        small_model("group"), "tent", lr=0.05, lr_span=4.0, exclude=None, aggregate="evidence", num_classes=5
    )
    assert adapted.learning_rates.tolist() == [0.0125, 0.05, 0.2]
    for x in small_stream(4, 6):
        before = adapted.evidence
        expected = Evidence().combine(adapted.particles_log_probs(x), before)
        assert torch.allclose(adapted(x), expected)
        assert float(adapted.evidence["images"]) == float(before["images"]) + 6
