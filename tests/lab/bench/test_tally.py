"""Scores against torchmetrics, and whatever pieces a stream is counted in."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from polytta.lab.bench.tally import Scores, Tally
from polytta.models._torchvision_cpu import import_zoo

IMAGES, CLASSES = 300, 12


@pytest.fixture
def predictions() -> tuple[Tensor, Tensor]:
    log_probs = (3 * torch.randn(IMAGES, CLASSES)).log_softmax(dim=1)
    # The last class never comes.
    labels = torch.multinomial(log_probs.exp().sqrt()[:, :-1], 1).squeeze(1)
    return log_probs, labels


def scores(log_probs: Tensor, labels: Tensor, cuts: tuple[int, ...] = ()) -> Scores:
    tally = Tally(labels.numpy(), None, CLASSES)
    for start, end in pairwise((0, *cuts, len(labels))):
        tally.add(log_probs[start:end], torch.rand(end - start), torch.zeros(end - start))
    return tally.scores()


def test_scores_are_those_of_torchmetrics(predictions: tuple[Tensor, Tensor]) -> None:
    log_probs, labels = predictions
    # torchmetrics imports torchvision where there is one, so it needs the same care.
    reference = import_zoo("torchmetrics.functional.classification")
    probs, ours = log_probs.exp(), scores(*predictions)

    def share(**arguments: object) -> Tensor:
        return 100 * reference.multiclass_accuracy(probs, labels, CLASSES, **arguments)

    assert ours.accuracy == pytest.approx(float(share(average="micro")), rel=1e-6)
    assert ours.top5 == pytest.approx(float(share(average="micro", top_k=5)), rel=1e-6)
    ece = reference.multiclass_calibration_error(probs, labels, CLASSES, n_bins=15, norm="l1")
    assert ours.ece == pytest.approx(float(ece), abs=1e-6)
    confusion = reference.multiclass_confusion_matrix(probs, labels, CLASSES).double()
    present = confusion.sum(dim=1)
    expected = (100 * confusion.diagonal() / present).tolist()
    assert ours.per_class[-1] is None
    assert ours.per_class[:-1] == pytest.approx(expected[:-1], rel=1e-6)
    assert ours.nll == pytest.approx(float(torch.nn.functional.nll_loss(log_probs, labels)), abs=1e-6)
    truth = torch.nn.functional.one_hot(labels, CLASSES)
    assert ours.brier == pytest.approx(float((probs - truth).square().sum(dim=1).mean()), abs=1e-6)


@pytest.mark.parametrize("cuts", [(1,), (7, 8, 200), tuple(range(1, IMAGES))])
def test_pieces_change_nothing(predictions: tuple[Tensor, Tensor], cuts: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    whole = vars(scores(*predictions))
    torch.manual_seed(1)
    pieces = vars(scores(*predictions, cuts))
    exact = ("accuracy", "top5", "per_class", "nll", "disagreement")
    assert {name: pieces[name] for name in exact} == {name: whole[name] for name in exact}
    # Exponentials and sums over classes may be rounded otherwise in a batch of another size.
    for name in ("ece", "brier"):
        assert pieces[name] == pytest.approx(whole[name], rel=1e-12)


def test_five_classes_have_no_five_best() -> None:
    tally = Tally(np.array([0]), None, 5)
    tally.add(torch.zeros(1, 5).log_softmax(dim=1), torch.zeros(1), torch.zeros(1))
    assert tally.scores().top5 is None


def test_risk_of_the_surest_answers_is_counted_by_hand() -> None:
    confidence = torch.tensor([0.9, 0.6, 0.8, 0.7])
    log_probs = torch.stack([confidence, 1 - confidence], dim=1).log()
    # Wrong where it is second surest, and where it is least sure.
    tally = Tally(np.array([0, 1, 1, 0]), None, 2)
    tally.add(log_probs, torch.zeros(4), torch.zeros(4))
    told = tally.selective_risk()
    assert told.coverage == (0.25, 0.5, 0.75, 1.0)
    assert told.risk == pytest.approx((0, 1 / 2, 1 / 3, 1 / 2))
    assert tally.scores().aurc == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
