import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.lab.bench.cells import run_cell, run_cells, tiny_cell

from polytta.aggregate import MeanProbs, evidence
from polytta.api import adapt_with
from polytta.errors import ConfigError, InputError
from polytta.lab.bench import costs, feed, groups, run
from polytta.lab.bench.data import open_cell_stream
from polytta.lab.bench.execution import Execution
from polytta.lab.bench.plan import KeptClasses, Plan, plan_cell, source_model
from polytta.lab.bench.record import Record, canonical_json
from polytta.lab.bench.run import run_group
from polytta.lab.bench.tally import Tally
from polytta.settings.plain import to_plain
from polytta.stream import Batch, Stream

MAY_DIFFER = ("environment", "times", "sha256")


def lasting(record: Record) -> dict[str, object]:
    return {name: value for name, value in record.to_dict().items() if name not in MAY_DIFFER}


@pytest.mark.parametrize("variant", ["source", "sar", "svgd", "grad_flips", "grad_mixed"])
def test_two_runs_of_a_cell_give_the_same_record(variant: str) -> None:
    cell = tiny_cell(variant)
    first, second = run_cell(cell), run_cell(cell)
    assert lasting(first) == lasting(second)
    assert first.results.images == len(first.correct) == 24
    assert (max(first.results.stepped) > 0) == (variant != "source")


def test_streams_fed_and_counted_in_pieces_give_the_same_record(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [tiny_cell("naive", scenario="mild", batch_size=5, seed=seed) for seed in (0, 1)]
    whole = run_cells(cells)
    monkeypatch.setattr(feed, "_FEED_BYTES", 1)
    one_by_one = run_cells(cells)
    monkeypatch.setattr(feed, "_FEED_BYTES", 2 * 2 * 5 * 3 * 32 * 32 * 4)
    monkeypatch.setattr(run, "_HELD_VALUES", 1)
    in_pairs = run_cells(cells)
    for record, other in zip(2 * whole, (*one_by_one, *in_pairs), strict=True):
        assert other.key == record.key
        assert (other.correct == record.correct).all()
        assert other.curves.position == record.curves.position
        for name in ("accuracy", "top5", "per_class", "disagreement", "selected", "stepped", "forward_samples"):
            assert getattr(other.results, name) == getattr(record.results, name)
        # Images that lie elsewhere in memory may be multiplied in another order.
        for name in ("nll", "brier", "ece", "entropy", "drift"):
            assert getattr(other.results, name) == pytest.approx(getattr(record.results, name), rel=1e-5)


def test_a_record_of_half_a_stream_is_refused() -> None:
    tally = Tally(np.zeros(4, np.int64), None, 3)
    tally.add(torch.full((2, 3), 1 / 3).log(), torch.zeros(2), torch.zeros(2))
    with pytest.raises(RuntimeError, match="2 of 4 images were predicted"):
        tally.scores()
    tally.add(torch.full((2, 3), 1 / 3).log(), torch.zeros(2), torch.zeros(2))
    assert tally.scores().top5 is None, "three classes have no five best"


def test_the_numbers_are_those_of_a_plain_loop() -> None:
    cell = tiny_cell("naive", scenario="mild", batch_size=7)
    seen: list[int] = []
    record = run_cells([cell], seen.append)[0]
    source, stream = source_model(cell), open_cell_stream(cell)
    adapted = adapt_with(cell.to_settings(), source.module)
    log_probs, labels, disagreed = [], [], []
    for batch in stream.batches():
        log_probs.append(adapted(source.preprocessing(batch.images)))
        labels.append(torch.from_numpy(batch.labels))
        assert adapted.last is not None
        disagreed += [adapted.last.disagreement] * len(batch.labels)
    probs, y = torch.cat(log_probs).exp().double(), torch.cat(labels)
    results, hits = record.results, probs.argmax(dim=1) == y
    assert seen == [7, 7, 7, 3]
    assert (record.correct == hits.numpy()).all()
    assert results.accuracy == pytest.approx(100 * hits.double().mean().item())
    assert results.top5 == pytest.approx(100 * (probs.topk(5).indices == y[:, None]).any(dim=1).double().mean().item())
    assert results.nll == pytest.approx(-probs[torch.arange(len(y)), y].log().mean().item(), rel=1e-5)
    truth = torch.nn.functional.one_hot(y, 10)
    assert results.brier == pytest.approx((probs - truth).square().sum(dim=1).mean().item(), rel=1e-5)
    assert results.disagreement == pytest.approx(np.mean(disagreed))
    assert results.forward_samples == adapted.totals.forward_samples
    assert results.selected == adapted.totals.selected
    assert results.drift == pytest.approx((adapted.theta - adapted.source).norm(dim=1).tolist())
    counts = np.bincount(y.numpy(), minlength=10)
    assert [value is None for value in results.per_class] == (counts == 0).tolist()
    assert sum(value * count for value, count in zip(results.per_class, counts, strict=True) if value) == pytest.approx(
        100 * hits.sum().item()
    )
    settings = {name: value for name, value in to_plain(adapted.settings).items() if name in record.pins["settings"]}
    assert canonical_json(settings) == canonical_json(record.pins["settings"])


def test_curves_bins_and_trajectories_tell_of_the_same_stream() -> None:
    record = run_cell(tiny_cell("svgd", images=120))
    results, curves = record.results, record.curves
    assert len(curves.position) == 50
    assert curves.position[-1] == 120
    widths = np.diff((0, *curves.position))
    assert np.dot(widths, curves.accuracy) / 120 == pytest.approx(results.accuracy)
    assert np.dot(widths, curves.entropy) / 120 == pytest.approx(results.entropy)
    assert curves.drift[-1] == results.drift
    reliability = record.reliability
    assert len(reliability.count) == 15
    gaps = np.abs(np.array(reliability.accuracy) - reliability.confidence)
    assert np.dot(reliability.count, gaps) / 120 == pytest.approx(results.ece, abs=1e-6)
    levels = record.disagreement_vs_error
    assert np.dot(levels.count, levels.error) / 120 == pytest.approx(1 - results.accuracy / 100)
    particles = record.particles
    assert len(particles.projection) == 20
    # A projection never adds length, and the two main directions hold most of it.
    lengths = np.linalg.norm(particles.projection[-1], axis=1)
    assert (lengths <= np.array(results.drift) * (1 + 1e-6)).all()
    assert lengths.max() > 0.5 * max(results.drift)
    assert particles.kernel is not None
    assert np.allclose(np.diag(particles.kernel), 1)
    assert np.allclose(np.diag(particles.pairwise), 0)


def test_weights_over_time_end_where_the_population_does() -> None:
    record = run_cell(tiny_cell("lenses", images=6))
    weights = np.array(record.curves.weights)
    assert weights.shape == (len(record.curves.position), record.particle_count)
    assert np.allclose(weights.sum(axis=1), 1)
    assert record.curves.weights[-1] == record.particles.weights
    assert run_cell(tiny_cell("tent", images=6)).curves.weights == ()


@pytest.mark.parametrize("variant", ["source", "tent", "sar", "naive", "svgd", "grad_mixed"])
def test_folded_cells_are_the_cells_alone(variant: str) -> None:
    other_rate = {"corruption": "fog", "settings": {"lr": 0.005}, "seed": 1}
    changes = [{"corruption": "fog"}, {"corruption": "snow", "seed": 3}, other_rate]
    cells = [tiny_cell(variant, scenario="mild", batch_size=9, **change) for change in changes]
    for folded, cell in zip(run_cells(cells), cells, strict=True):
        alone = run_cell(cell)
        assert folded.key == alone.key
        assert (folded.correct == alone.correct).all()
        for name in ("accuracy", "ece", "nll", "brier", "entropy", "disagreement"):
            assert getattr(folded.results, name) == pytest.approx(getattr(alone.results, name), abs=1e-5)
        assert folded.results.drift == pytest.approx(alone.results.drift, rel=1e-3)
        for name in ("selected", "stepped", "resets", "forward_samples", "backward_samples"):
            assert getattr(folded.results, name) == getattr(alone.results, name)
        assert folded.times.folded_cells == 3


def test_streams_cut_into_other_batches_do_not_share_a_batch() -> None:
    """Mixed: 3 + 3 + 3 + 1 images; continual: 3 + 2 of one corruption, 3 + 2 of the other."""
    changes = [{"scenario": scenario, "seed": seed} for scenario in ("mixed", "continual") for seed in (0, 1)]
    shared = {"corruption": ("fog", "snow"), "images": 5, "batch_size": 3}
    cells = [tiny_cell("tent", **shared, **change) for change in changes]
    with pytest.raises(RuntimeError, match="batches of different sizes"):
        run_cells([cells[0], cells[2]])
    together = groups.make_groups([plan_cell(cell) for cell in cells], Execution(fold="always"))
    assert [len(group) for group in together] == [2, 2]
    for group in together:
        for plan, folded in zip(group, run_group(group, lambda images: None, Execution()), strict=True):
            alone = run_cell(plan.cell)
            assert (folded.correct == alone.correct).all()
            assert folded.results.nll == pytest.approx(alone.results.nll, abs=1e-5)
            assert folded.curves.position == alone.curves.position


def test_rounding_above_one_does_not_change_the_calibration_error() -> None:
    """The mixture of seven particles that are all sure sums to a little more than 1."""
    log_probs = MeanProbs().combine(
        torch.tensor([[80.0, 0.0, 0.0], [2.0, 1.0, 0.0]]).expand(1, 7, 2, 3), {}, torch.zeros(1, 2)
    )[0]
    assert log_probs.exp().max() > 1
    tally = Tally(np.array([0, 0]), None, 3)
    tally.add(log_probs, torch.zeros(2), torch.zeros(2))
    assert tally.scores().ece == pytest.approx((1 - float(log_probs[1, 0].exp())) / 2, abs=1e-6)


def test_reading_images_is_not_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of which reading takes a thousand seconds and every look at it one."""
    now = itertools.count()
    passed, batches = 0.0, Stream.batches

    def read(stream: Stream) -> Iterator[Batch]:
        nonlocal passed
        for batch in batches(stream):
            passed += 1000
            yield batch

    monkeypatch.setattr(Stream, "batches", read)
    clocks = SimpleNamespace(perf_counter=lambda: passed + next(now), process_time=lambda: passed)
    monkeypatch.setattr(costs, "time", clocks)
    monkeypatch.setattr(feed, "_FEED_BYTES", 1)
    times = run_cell(tiny_cell("naive", images=24)).times
    assert passed == 24 * 1000
    assert 24 <= times.wall_seconds < 100
    assert times.processor_seconds == 0


def test_the_failure_of_a_group_is_over_before_its_cells_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback that is still held keeps everything the group had in memory."""
    held: list[object] = []

    def fails_together(plans: Sequence[Plan], report: object, execution: Execution) -> list[Record]:
        held.append(sys.exc_info()[1])
        if len(plans) > 1:
            raise MemoryError
        return []

    monkeypatch.setattr(groups, "run_group", fails_together)
    plans = tuple(plan_cell(tiny_cell("source", seed=seed)) for seed in (0, 1))
    assert groups.attempt(plans, lambda images: None, Execution()) == []
    assert held == [None, None, None]


def test_the_formula_of_the_evidence_is_pinned_where_it_weighs(monkeypatch: pytest.MonkeyPatch) -> None:
    equal, weighed = (plan_cell(tiny_cell("naive", {"aggregate": name})) for name in ("probs", "evidence"))
    monkeypatch.setattr(evidence, "SHARPNESS", 19.0)
    assert plan_cell(equal.cell).key == equal.key
    assert plan_cell(weighed.cell).key != weighed.key


def test_layers_that_the_model_does_not_have_are_refused_by_row() -> None:
    with pytest.raises(ConfigError, match="variant 'tent': targets: got 'layer9', which matches no norm layer"):
        plan_cell(tiny_cell("tent", {"targets": "layer9"}))


def test_one_cell_has_one_model() -> None:
    with pytest.raises(InputError, match="mild over 2 corruptions"):
        plan_cell(tiny_cell(scenario="mild", corruption=("fog", "snow")))


def test_the_plan_knows_the_key_and_the_seed_changes_it() -> None:
    cell = tiny_cell("deyo", {"lr": None})
    plan = plan_cell(cell)
    assert plan.key == run_cell(cell).key
    assert plan_cell(replace(cell, seed=1)).key != plan.key
    assert plan.rates == ("lr", pytest.approx((1.5625e-05,)))
    assert plan.particles == 1


@pytest.mark.parametrize("settings", [{"lr": None}, {"lr": None, "lr_span": 3, "optimizer": "adam"}, {"lr": 0.1}])
@pytest.mark.parametrize("batch_size", [1, 6])
def test_the_plan_knows_the_rates_and_settings_of_the_first_batch(settings: dict[str, object], batch_size: int) -> None:
    cell = tiny_cell("naive", settings, scenario="mild", batch_size=batch_size)
    source = source_model(cell)
    adapted = adapt_with(cell.to_settings(), source.module)
    adapted(torch.zeros(batch_size, 3, 32, 32))
    pinned = plan_cell(cell).pins["settings"]
    assert {name: value for name, value in to_plain(adapted.settings).items() if name in pinned} == pinned
    assert to_plain(adapted.settings).keys() - pinned.keys() == {
        *("engine", "populations", "particles_at_once"),
        *("axes", "size", "pace"),  # in one form alone once decided, and newer than records that keep their keys
        *("steps", "episodic", "prompts", "guard"),  # newer too, and as they always were
    }


def test_a_classifier_can_be_kept_to_some_classes() -> None:
    network = source_model(tiny_cell()).module
    x = torch.randn(2, 3, 32, 32)
    assert torch.equal(KeptClasses(network, (7, 2))(x), network(x)[:, [7, 2]])


def test_a_stream_of_several_corruptions_has_the_accuracy_of_each() -> None:
    cell = replace(tiny_cell("tent", scenario="mixed", batch_size=8), corruption=("fog", "contrast"))
    record = run_cell(cell)
    stream = open_cell_stream(cell)
    expected = [100 * record.correct[stream.order.domain == number].mean() for number in (0, 1)]
    assert record.results.per_corruption == pytest.approx(expected)
    assert run_cell(tiny_cell("tent")).results.per_corruption == ()
