"""Classes in turn are told from classes by chance, and only they change an answer."""

import math

import pytest
import torch
from torch import Tensor

import polytta
from polytta.aggregate import turns
from polytta.checks.networks import small_model, small_stream

CLASSES = 5


def answers(labels: Tensor, right: float = 0.7, seed: int = 0, classes: int = CLASSES) -> Tensor:
    """(1, N, C) log-probabilities of somebody who is right that often, unsure, and says class 0 too often."""
    generator = torch.Generator().manual_seed(seed)
    wrong = torch.rand(len(labels), generator=generator) > right
    guess = torch.where(
        torch.rand(len(labels), generator=generator) < 0.5, 0, torch.randint(classes, labels.shape, generator=generator)
    )
    told = torch.where(wrong, guess, labels)
    noise = torch.randn(len(labels), classes, generator=generator, dtype=torch.float64)
    return (noise + 2.5 * torch.nn.functional.one_hot(told, classes)).log_softmax(dim=-1).unsqueeze(0)


def followed(told: Tensor, batch: int) -> tuple[Tensor, dict[str, Tensor]]:
    """(1, N, C) corrected answers to a stream in batches, and the state after it."""
    state = turns.begin(1, told.shape[2], told)
    found = []
    for part in told.split(batch, dim=1):
        found.append(turns.corrected(part, state, turns.sameness(state)))
        state = turns.observe(state, part.exp())
    return torch.cat(found, dim=1), state


def accuracy(log_probs: Tensor, labels: Tensor) -> float:
    return float((log_probs[0].argmax(dim=-1) == labels).double().mean())


@pytest.mark.parametrize("batch", [1, 7, 32, 50])
def test_classes_in_turn_are_noticed_and_help_at_any_batch_size(batch: int) -> None:
    labels = torch.arange(CLASSES).repeat_interleave(200)
    told = answers(labels)
    found, state = followed(told, batch)
    assert float(turns.sameness(state)) > 0.4
    assert accuracy(found, labels) > accuracy(told, labels) + 0.03
    assert torch.allclose(found.exp().sum(dim=-1), torch.ones(1, len(labels), dtype=torch.float64))


@pytest.mark.parametrize("classes", [5, 300])
@pytest.mark.parametrize("batch", [1, 32, 50])
def test_classes_by_chance_change_nothing_however_many(batch: int, classes: int) -> None:
    labels = torch.randint(classes, (2000,), generator=torch.Generator().manual_seed(1))
    told = answers(labels, classes=classes)
    found, state = followed(told, batch)
    assert float(turns.sameness(state)) < 0.04
    assert float((found.argmax(-1) != told.argmax(-1)).double()[:, 500:].mean()) < 0.01


def test_a_stream_of_one_class_is_no_news() -> None:
    labels = torch.zeros(600, dtype=torch.long)
    told = answers(labels)
    found, state = followed(told, 10)
    assert float(turns.sameness(state)) < 0.05
    assert accuracy(found, labels) > accuracy(told, labels) - 0.01


def test_the_means_are_those_of_pairs_of_images() -> None:
    """Written out image by image: batches of 4, so that 28 images before a batch are near it."""
    probs = torch.randn(1, 12, 3, dtype=torch.float64).softmax(dim=-1)
    state = turns.begin(1, 3, probs)
    near, far, own = [], [], []
    for start in range(0, 12, 4):
        batch, before = probs[0, start : start + 4], probs[0, :start]
        if start:
            pairs = [batch[i] @ batch[j] for i in range(4) for j in range(4) if i != j]
            pairs += 2 * [one @ other for one in batch for other in before]
            near.append(torch.stack(pairs).mean())
            far.append((batch @ before.mean(dim=0)).mean())
            own.append(batch.square().sum(dim=1).mean())
        state = turns.observe(state, probs[:, start : start + 4])
    for name, values in (("near", near), ("far", far), ("self", own)):
        assert float(state[f"turn_{name}"]) == pytest.approx(float(torch.stack(values).mean()))
    assert torch.allclose(state["turn_mean"][0], probs[0].mean(dim=0))
    assert torch.allclose(state["turn_recent"][0], probs[0].mean(dim=0))
    numbers = [float(torch.stack(values).mean()) for values in (near, far, own)]
    expected = 2 * (numbers[0] - numbers[1]) / max(0.05, numbers[2] - numbers[1])
    assert float(turns.sameness(state)) == pytest.approx(min(1.0, max(0.0, expected)))


@pytest.mark.parametrize(("near", "same", "strength"), [(0.53, 0.15, 0.5), (0.6, 0.5, 1.0), (0.52, 0.1, 0.0)])
def test_an_answer_is_what_bayes_rule_says(near: float, same: float, strength: float) -> None:
    """Half of it between the two bounds, none of it where shifts that come in turn could be the reason."""
    state = {
        "turn_mean": torch.tensor([[0.5, 0.5]], dtype=torch.float64),
        "turn_recent": torch.tensor([[0.9, 0.1]], dtype=torch.float64),
        "turn_images": torch.tensor([100.0], dtype=torch.float64),
        **{f"turn_{name}": torch.tensor([value], dtype=torch.float64)
           for name, value in (("near", near), ("far", 0.5), ("self", 0.9))},
    }  # fmt: skip
    given = (0.4, 0.6)
    found = given
    assert float(turns.sameness(state)) == pytest.approx(same)
    for _ in range(4):
        local = [(found[c] + 31 * (0.9, 0.1)[c] + 10 * 0.5) / 42 for c in (0, 1)]
        raw = [given[c] * (local[c] / 0.5) ** strength for c in (0, 1)]
        found = (raw[0] / sum(raw), raw[1] / sum(raw))
    answer = turns.corrected(torch.tensor([[given]], dtype=torch.float64).log(), state, turns.sameness(state))
    assert answer.exp()[0, 0].tolist() == pytest.approx(found)


def test_the_past_fades_and_memory_does_not_grow() -> None:
    state = turns.begin(1, 2, torch.zeros(1))
    for value in (1.0, 0.0):
        probs = torch.tensor([[[value, 1 - value]]]).expand(1, 1000, 2)
        for _ in range(15):
            state = turns.observe(state, probs)
    assert float(state["turn_images"]) == turns.LONG
    assert float(state["turn_mean"][0, 0]) == pytest.approx(0.9**15, rel=1e-4)
    assert math.isfinite(float(turns.sameness(state)))


def test_an_adapter_answers_with_the_classes_around_an_image() -> None:
    """Single images of one kind after the other; a prediction is what the step would answer."""
    adapted = polytta.adapt(small_model("group"), exclude=None, pace=0.0, preset="recommended")
    kinds = small_stream(4, 1)
    for image in kinds:
        for _ in range(40):
            before = adapted.predict(image)
            assert torch.equal(adapted(image), before)
    assert float(turns.sameness(adapted._session.state.evidence).min()) > 0.5
