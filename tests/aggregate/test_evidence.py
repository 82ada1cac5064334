import torch

import polytta
from polytta.aggregate import evidence
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
    answer = evidence.combine(observed(good, unsure, collapsed), torch.stack([good, unsure, collapsed]))
    assert torch.equal(answer.argmax(1), labels)
    assert torch.allclose(answer.exp().sum(1), torch.ones(40))


def test_scores_are_running_means_up_to_the_horizon() -> None:
    logits = torch.randn(2, 40, 4)
    state, probs = observed(*logits), logits.softmax(-1)
    assert torch.allclose(state["mean_probs"], probs.mean(dim=1))
    assert torch.allclose(state["mean_entropy"], -(probs * probs.log()).sum(-1).mean(dim=1))


def test_an_adapter_weights_by_what_it_saw_before() -> None:
    adapted = polytta.adapt(
        small_model("group"), "tent", lr=0.05, lr_span=4.0, exclude=None, aggregate="evidence", num_classes=5
    )
    assert adapted.config.learning_rates == (0.0125, 0.05, 0.2)
    for x in small_stream(4, 6):
        before = adapted.evidence
        expected = evidence.combine(before, adapted.particles_log_probs(x))
        assert torch.allclose(adapted(x), expected)
        assert float(adapted.evidence["images"]) == float(before["images"]) + 6
