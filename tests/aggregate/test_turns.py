"""Classes in turn are told from classes by chance."""

import math

import pytest
import torch
from tests.aggregate.unsure import CLASSES, answers
from torch import Tensor

from polytta.aggregate import turns


def followed(told: Tensor, batch: int) -> float:
    """How alike neighbours are, after a stream in batches."""
    state = turns.begin(1, told.shape[2], told)
    for part in told.split(batch, dim=1):
        state = turns.observe(state, part.exp())
    return float(turns.sameness(state))


@pytest.mark.parametrize("batch", [1, 7, 32, 50])
def test_classes_in_turn_are_noticed_at_any_batch_size(batch: int) -> None:
    assert followed(answers(torch.arange(CLASSES).repeat_interleave(200)), batch) > 0.4


@pytest.mark.parametrize("classes", [5, 300])
@pytest.mark.parametrize("batch", [1, 32, 50])
def test_classes_by_chance_are_not_however_many(batch: int, classes: int) -> None:
    labels = torch.randint(classes, (2000,), generator=torch.Generator().manual_seed(1))
    assert followed(answers(labels, classes=classes), batch) < 0.04


def test_a_stream_of_one_class_is_no_news() -> None:
    assert followed(answers(torch.zeros(600, dtype=torch.long)), 10) < 0.05


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


def test_the_past_fades_and_memory_does_not_grow() -> None:
    state = turns.begin(1, 2, torch.zeros(1))
    for value in (1.0, 0.0):
        probs = torch.tensor([[[value, 1 - value]]]).expand(1, 1000, 2)
        for _ in range(15):
            state = turns.observe(state, probs)
    assert float(state["turn_images"]) == turns.LONG
    assert float(state["turn_mean"][0, 0]) == pytest.approx(0.9**15, rel=1e-4)
    assert math.isfinite(float(turns.sameness(state)))
