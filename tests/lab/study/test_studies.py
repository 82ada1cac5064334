"""Studies on a few bundled images, checked against the model itself."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.lab.pages.browser import needs_chromium, probe

from polytta.errors import ConfigError, StateError
from polytta.lab.bench.cell import Cell
from polytta.lab.bench.data import open_cell_stream
from polytta.lab.study import landscape, underspecification
from polytta.lab.study.evaluate import evaluate
from polytta.lab.study.solutions import Solutions, _reordered, find_solutions

CELL = Cell(
    model="bundled/cifar10_resnet_gn",
    dataset="bundled",
    corruption="frost",
    severity=3,
    scenario="batch1",
    batch_size=1,
    variant="tent",
    images=8,
    settings={"method": "tent", "particles": 1, "lr": 1e-2},
)


@pytest.fixture(scope="module")
def three() -> Solutions:
    return find_solutions(CELL, (0, 1, 2), judged_on=6)


def test_evaluation_equals_the_model_with_those_parameters(three: Solutions) -> None:
    network = three.source.module
    theta = three.adapted.layout.named(three.thetas[1])
    with torch.no_grad():
        logits = torch.func.functional_call(network, theta, three.x)
    log_probs = logits.log_softmax(dim=1)
    measured = evaluate(three.source, three.adapted, three.thetas, three.x, three.labels)
    assert measured.loss[1] == pytest.approx(-float(log_probs[range(6), three.labels].mean()), abs=1e-5)
    assert measured.entropy[1] == pytest.approx(-float((log_probs.exp() * log_probs).sum(dim=1).mean()), abs=1e-5)
    assert measured.accuracy[1] == pytest.approx(100 * float((logits.argmax(dim=1) == three.labels).float().mean()))


def test_seeds_meet_the_same_images_in_orders_of_their_own() -> None:
    stream = open_cell_stream(CELL)
    orders = [_reordered(stream, seed).order.item.tolist() for seed in (0, 1)]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(stream.order.item.tolist())
    assert orders[0] != orders[1]


def test_seeds_part_and_distances_are_euclidean(three: Solutions) -> None:
    study = underspecification.measure(three)
    thetas = three.thetas.numpy()
    for number, figures in enumerate(study.figures.values()):
        others = [np.linalg.norm(thetas[number] - other) for i, other in enumerate(thetas) if i != number]
        assert figures["mean pairwise distance"] == pytest.approx(np.mean(others), rel=1e-4)
        start = three.adapted.source.numpy()
        assert figures["distance to source"] == pytest.approx(np.linalg.norm(thetas[number] - start), rel=1e-4)
    assert study.summary("mean pairwise distance")[0] > 0
    assert study.summary("accuracy")[1] == pytest.approx(np.std([s.accuracy for s in three.found], ddof=1))


def test_the_plane_goes_through_all_three(three: Solutions) -> None:
    axes = landscape._axes(three.thetas.double())
    assert (axes @ axes.T - torch.eye(2)).abs().max() < 1e-9
    surveyed = landscape.survey(three, 3)
    back = three.thetas[0].double() + torch.from_numpy(surveyed.corners) @ axes
    assert (back - three.thetas.double()).abs().max() < 1e-6
    assert surveyed.surface.loss.shape == (9,)
    assert surveyed.x[0] < surveyed.corners[:, 0].min()
    assert surveyed.x[-1] > surveyed.corners[:, 0].max()


def test_a_point_of_the_surface_is_that_points_model(three: Solutions) -> None:
    surveyed = landscape.survey(three, 2)
    axes = landscape._axes(three.thetas.double())
    corner = torch.tensor([surveyed.x[-1], surveyed.y[0]]) @ axes + three.thetas[0].double()
    own = evaluate(three.source, three.adapted, corner.float().unsqueeze(0), three.x, three.labels)
    assert surveyed.surface.loss[1] == pytest.approx(own.loss[0], abs=1e-5)


def test_solutions_on_a_line_span_no_plane(three: Solutions) -> None:
    same = Solutions(CELL, three.source, three.adapted, (three.found[0],) * 3, three.x, three.labels)
    with pytest.raises(StateError, match="no plane"):
        landscape.survey(same, 3)


@pytest.mark.parametrize("seeds", [(0,), (1, 1)])
def test_seeds_must_differ(seeds: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="seeds"):
        find_solutions(CELL, seeds, judged_on=2)


@needs_chromium
def test_pages_in_a_browser(three: Solutions, tmp_path: Path) -> None:
    seen = probe(underspecification.as_page(underspecification.measure(three)), tmp_path)
    assert (seen["plots"], seen["rows"], seen["fetched"], seen["overflow"], seen["lost"]) == (
        "2",
        "4",
        "0",
        "false",
        "0",
    )
    seen = probe(landscape.as_page(landscape.survey(three, 3)), tmp_path)
    assert (seen["plots"], seen["rows"], seen["fetched"], seen["overflow"], seen["lost"]) == (
        "3",
        "5",
        "0",
        "false",
        "0",
    )


@pytest.mark.parametrize(
    ("entropies", "accuracies", "differ"),
    [
        ((0.50, 0.51, 0.50), (50.0, 75.0, 62.5), True),
        ((0.50, 0.51, 0.50), (50.0, 62.5, 50.0), False),  # one image of eight
        ((0.50, 0.51, 0.50), (60.0, 60.0, 60.0), False),
        ((0.50, 0.51, 0.50), (60.0, 60.5, 60.0), False),
        ((0.10, 0.90, 0.50), (60.0, 62.0, 61.0), False),
    ],
)
def test_differently_right_is_said_only_where_it_is_so(
    three: Solutions, entropies: tuple[float, ...], accuracies: tuple[float, ...], differ: bool
) -> None:
    study = underspecification.measure(three)
    for row, entropy, accuracy in zip(study.figures.values(), entropies, accuracies, strict=True):
        row.update({"final entropy": entropy, "accuracy": accuracy})
    assert underspecification.differ_in_accuracy_alone(study) is differ
    assert (underspecification.TRUE_TITLE in underspecification.as_page(study)) is differ
    assert ("they are not here" in underspecification.verdict(study)) is not differ
