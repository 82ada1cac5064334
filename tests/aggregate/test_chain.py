"""The images nearby tell of an image's class where classes come in runs or few at a time, and nothing elsewhere."""

import itertools
import math

import pytest
import torch
from tests.aggregate.unsure import CLASSES, answers
from torch import Tensor

import polytta
from polytta.aggregate import chain
from polytta.checks.networks import small_model, small_stream


def followed(told: Tensor, batch: int) -> tuple[Tensor, dict[str, Tensor]]:
    """(1, N, C) answers to a stream in batches, and the state after it."""
    state, found = chain.begin(1, told.shape[2], told), []
    for part in told.split(batch, dim=1):
        answer, state = chain.read(part, state)
        found.append(answer)
    return torch.cat(found, dim=1), state


def accuracy(log_probs: Tensor, labels: Tensor) -> float:
    return float((log_probs[0].argmax(dim=-1) == labels).double().mean())


def drawn(seed: int, *shape: int, most: int = CLASSES) -> Tensor:
    return torch.randint(most, shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("run", [16, 200])
@pytest.mark.parametrize("batch", [1, 7, 32, 50])
def test_runs_of_a_class_help_at_any_batch_size(batch: int, run: int) -> None:
    labels = drawn(3, 1000 // run).repeat_interleave(run)
    told = answers(labels)
    found, _ = followed(told, batch)
    # Single images are answered before those after them are seen.
    assert accuracy(found, labels) > accuracy(told, labels) + (0.02 if batch == 1 else 0.07)
    assert torch.allclose(found.exp().sum(dim=-1), torch.ones(1, len(labels), dtype=torch.float64))


def test_few_classes_at_a_time_help_in_any_order() -> None:
    """Batches of two classes each, mixed: a window knows which two, and no chain fits."""
    pairs = torch.stack([torch.randperm(CLASSES, generator=torch.Generator().manual_seed(n))[:2] for n in range(30)])
    labels = torch.cat([pair[drawn(n, 64, most=2)] for n, pair in enumerate(pairs)])
    told = answers(labels)
    found, state = followed(told, 64)
    assert accuracy(found, labels) > accuracy(told, labels) + 0.03
    assert int(state["chain_scores"][0].argmax()) == 0


@pytest.mark.parametrize("classes", [2, 3, 5, 300])
@pytest.mark.parametrize("batch", [1, 32, 50])
def test_classes_by_chance_change_nothing_however_many(batch: int, classes: int) -> None:
    labels = drawn(1, 2000, most=classes)
    told = answers(labels, classes=classes)
    found, _ = followed(told, batch)
    assert float((found.argmax(-1) != told.argmax(-1)).double().mean()) < 0.005


def test_a_shift_that_changes_what_is_said_is_not_taken_for_classes() -> None:
    """In the second half, a third of all images is said to be of class 0, whatever they are."""
    labels = drawn(1, 2000)
    told = answers(labels)
    blind = torch.rand(1000, generator=torch.Generator().manual_seed(5)) < 1 / 3
    told[0, 1000:][blind] = answers(torch.zeros(int(blind.sum()), dtype=torch.long), right=1.0)[0]
    found, _ = followed(told, 50)
    assert accuracy(found, labels) > accuracy(told, labels) - 0.01


def test_runs_among_many_classes_are_told_from_bias_by_their_order() -> None:
    """Runs of three among three hundred classes, said by somebody who names one class far too often."""
    labels = drawn(3, 320, most=300).repeat_interleave(3)
    told = (3 * answers(labels, right=0.9, classes=300)).log_softmax(dim=-1)
    found, _ = followed(told, 64)
    assert accuracy(found, labels) > accuracy(told, labels) + 0.1
    shuffled = torch.randperm(960, generator=torch.Generator().manual_seed(0))
    by_chance, _ = followed(told[:, shuffled], 64)
    assert float((by_chance.argmax(-1) != told[:, shuffled].argmax(-1)).double().mean()) < 0.01


@pytest.mark.parametrize("batch", [2, 5, 16, 64, 100])
def test_the_other_order_has_every_image_once_and_neighbours_apart(batch: int) -> None:
    order = chain._far_apart(torch.zeros(1, batch, 1))
    assert sorted(order.tolist()) == list(range(batch))
    apart = (order[1:] - order[:-1]).abs().min()
    assert int(apart) >= (batch // 8 if batch >= 16 else 1)


def test_a_bias_among_many_classes_is_not_taken_for_classes() -> None:
    """Half of all images are said to be of one of three classes of a thousand, as a model that sees nothing says."""
    labels = drawn(1, 600, most=1000)
    told = 3 * answers(labels, right=1.0, classes=1000)
    blind = torch.rand(600, generator=torch.Generator().manual_seed(5)) < 1 / 2
    told[0, blind] = 3 * answers(drawn(2, int(blind.sum()), most=3), right=1.0, seed=3, classes=1000)[0]
    told = told.log_softmax(dim=-1)
    found, state = followed(told, 64)
    assert float(state["chain_scores"].max()) > chain.MARGIN
    assert float((found.argmax(-1) != told.argmax(-1)).double().mean()) < 0.005


def test_a_stream_of_one_class_is_no_news() -> None:
    labels = torch.zeros(600, dtype=torch.long)
    told = answers(labels)
    found, _ = followed(told, 10)
    assert accuracy(found, labels) > accuracy(told, labels) - 0.01


def test_what_a_chain_expects_is_what_all_its_sequences_say() -> None:
    """Three images of two classes after nothing: every sequence of labels, by the chain and the others' words."""
    told = torch.tensor([[[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]]], dtype=torch.float64)
    expected, message = chain._in_chains(told.log(), chain.begin(1, 2, told)["chain_message"])
    heard = 0.8 * told[0] + 0.2 / 2
    for number, stay in enumerate((0.5, 1 - 0.05 * 10**0.5, 0.95)):
        moves = [[stay + (1 - stay) / 2, (1 - stay) / 2], [(1 - stay) / 2, stay + (1 - stay) / 2]]
        shares, after = torch.zeros(3, 2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
        for labels in itertools.product((0, 1), repeat=4):
            path = math.prod(moves[one][other] for one, other in itertools.pairwise(labels))
            words = [float(heard[place, label]) for place, label in enumerate(labels[:3])]
            for place in range(3):
                shares[place, labels[place]] += path * math.prod(words[:place] + words[place + 1 :])
            after[labels[3]] += path * math.prod(words)
        assert torch.allclose(expected[0, :, number], shares / shares.sum(dim=1, keepdim=True))
        assert torch.allclose(message[0, number], after / after.sum())


def test_an_image_is_never_its_own_witness() -> None:
    """What is expected of an image is the same whatever is said of that image."""
    told = answers(drawn(0, 20))
    other = told.clone()
    other[0, 7] = answers(torch.tensor([4]), seed=9)[0, 0]
    state = chain.begin(1, CLASSES, told)
    expected, changed = (chain._in_chains(one, state["chain_message"])[0][0] for one in (told, other))
    assert torch.allclose(expected[7], changed[7])
    assert not torch.allclose(expected[8], changed[8])


def test_an_answer_is_what_bayes_rule_says() -> None:
    """One image after a hundred, of which all is known: the best idea has all weight and expects the second class."""
    state = {
        "chain_mean": torch.tensor([[0.5, 0.5]], dtype=torch.float64),
        "chain_recent": torch.tensor([[0.1, 0.9]], dtype=torch.float64),
        "chain_message": torch.tensor([[[0.5, 0.5], [0.2, 0.8], [0.5, 0.5]]], dtype=torch.float64),
        "chain_scores": torch.tensor([[0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0]], dtype=torch.float64),
        "chain_images": torch.tensor([100.0], dtype=torch.float64),
    }
    answer, after = chain.read(torch.tensor([[[0.6, 0.4]]], dtype=torch.float64).log(), state)
    raw = [0.6 * 0.2 / 0.5, 0.4 * 0.8 / 0.5]
    assert answer.exp()[0, 0].tolist() == pytest.approx([value / sum(raw) for value in raw])
    foretold = 0.6 * 0.2 / 0.5 + 0.4 * 0.8 / 0.5
    score = 9 + (math.log(0.9 * foretold + 0.1) - 9) / 101
    assert float(after["chain_scores"][0, 2]) == pytest.approx(score)
    assert after["chain_mean"][0].tolist() == pytest.approx([(50 + 0.6) / 101, (50 + 0.4) / 101])
    assert after["chain_recent"][0].tolist() == pytest.approx([(31 * 0.1 + 0.6) / 32, (31 * 0.9 + 0.4) / 32])


def test_populations_are_read_alone() -> None:
    streams = [answers(drawn(3, 10).repeat_interleave(20)), answers(drawn(1, 200))]
    apart = [followed(told, 40) for told in streams]
    joined = torch.cat(streams)
    state, found = chain.begin(2, CLASSES, joined), []
    for part in joined.split(40, dim=1):
        answer, state = chain.read(part, state)
        found.append(answer)
    assert torch.allclose(torch.cat(found, dim=1), torch.cat([answer for answer, _ in apart]))


def test_the_past_fades_and_memory_does_not_grow() -> None:
    state = chain.begin(1, 2, torch.zeros(1))
    shapes = {name: value.shape for name, value in state.items()}
    for value in (0.99, 0.01):
        told = torch.tensor([[[value, 1 - value]]]).log().expand(1, 1000, 2)
        for _ in range(15):
            _, state = chain.read(told, state)
    assert float(state["chain_images"]) == chain.LONG
    assert float(state["chain_mean"][0, 0]) == pytest.approx(0.01 + 0.98 * 0.9**15, rel=1e-3)
    assert {name: value.shape for name, value in state.items()} == shapes
    assert all(value.isfinite().all() for value in state.values())


def test_certainty_and_impossible_answers_stay_finite() -> None:
    told = torch.full((1, 40, 3), -torch.inf).index_fill(2, torch.tensor([1]), 0.0).clamp(min=math.log(1e-6))
    answer, state = chain.read(told, chain.begin(1, 3, told))
    assert answer.isfinite().all()
    assert all(value.isfinite().all() for value in state.values())


def test_an_adapter_answers_with_the_images_nearby() -> None:
    """Single images of one kind after the other; a prediction is what the step would answer."""
    adapted = polytta.adapt(small_model("group"), exclude=None, pace=0.0, preset="recommended")
    for image in small_stream(4, 1):
        for _ in range(40):
            before = adapted.predict(image)
            assert torch.equal(adapted(image), before)
    assert float(adapted.evidence["chain_scores"].max()) > 0
    # All particles of a population share what was said.
    assert (adapted.evidence["chain_mean"] == adapted.evidence["chain_mean"][:1]).all()
