"""Rows that a preset completes, and cells whose particles have paces: planned, folded, and told of in tables."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.lab.bench.cells import run_cell, run_cells, tiny_cell

from polytta.api import adapt_with
from polytta.lab.bench import Grid
from polytta.lab.bench.cell import Cell
from polytta.lab.bench.data import open_cell_stream
from polytta.lab.bench.execution import Execution
from polytta.lab.bench.groups import make_groups, work
from polytta.lab.bench.plan import plan_cell, source_model
from polytta.lab.bench.record import Record
from polytta.lab.bench.variants import VARIANTS
from polytta.lab.pages.bench.pins import pinned_facts
from polytta.settings import resolve

EASY = {"name": "deyo", "entropy_threshold": 0.9, "plpd_threshold": -0.2}
FOLDS = Execution(fold="always")


def cell(settings: dict[str, Any], **change: Any) -> Cell:
    own = {"variant": "default", "scenario": "mild", "batch_size": 9, **change}
    return replace(tiny_cell(**own), settings=settings)


def recommended(*paces: float, **change: Any) -> Cell:
    return cell({"preset": "recommended", "method": EASY, "pace": paces}, **change)


def assert_same(one: Record, other: Record) -> None:
    assert one.key == other.key
    assert (one.correct == other.correct).all()
    for name in ("accuracy", "ece", "nll", "brier", "entropy", "disagreement"):
        assert getattr(one.results, name) == pytest.approx(getattr(other.results, name), abs=1e-5)
    assert one.results.drift == pytest.approx(other.results.drift, rel=1e-3, abs=1e-6)
    for name in ("selected", "stepped", "resets", "forward_samples", "backward_samples"):
        assert getattr(one.results, name) == getattr(other.results, name)


# ---------------------------------------------------------------------- the default row


def test_the_default_row_says_nothing_and_is_what_adapt_does() -> None:
    (found,) = Grid(variants=("default",), corruptions=("fog",)).cells()
    assert found.settings == VARIANTS["default"] == {"guard": "default"}
    tiny = cell({})
    plan, source = plan_cell(tiny), source_model(tiny)
    config = resolve(tiny.to_settings(), source.module)
    assert plan.particles == config.particles > 3
    assert plan.rates == ("pace", config.rates.values)
    assert work([plan]) == 24 * config.particles
    record = run_cell(tiny)
    assert record.particle_count == config.particles == len(record.results.drift)
    adapted, right = adapt_with(tiny.to_settings(), source.module), []
    for batch in open_cell_stream(tiny).batches():
        answer = adapted(source.preprocessing(batch.images))
        right.append(answer.argmax(dim=1) == torch.from_numpy(batch.labels))
    assert (torch.cat(right).numpy() == record.correct).all()
    assert adapted.totals.stepped == record.results.stepped


def test_looking_is_the_default_without_learning() -> None:
    looking, default = (run_cell(cell(VARIANTS[name])) for name in ("looking", "default"))
    assert set(looking.results.stepped) == {0}
    assert looking.results.backward_samples == 0
    assert looking.particle_count < default.particle_count


def test_tables_and_facts_tell_what_a_preset_made_of_a_row() -> None:
    record = run_cell(cell({}))
    entries = record.flat_cell()
    assert (entries["preset"], entries["particles"]) == ("recommended", record.particle_count)
    (fact,) = [one for one in pinned_facts([record]) if one.startswith("Row")]
    rates = ", ".join(f"{rate:.4g}" for rate in record.pins["settings"]["pace"])
    assert f"pace {rates}" in fact
    plain = run_cell(cell({"method": "tent"}))
    assert plain.flat_cell()["particles"] == plain.particle_count == 3
    assert plain.flat_cell()["preset"] == "paper"
    assert run_cell(cell({"preset": "official", "particles": 2})).flat_cell()["preset"] == "official"


def test_options_that_came_later_leave_keys_as_they_were() -> None:
    pinned = plan_cell(cell({"method": "tent", "lr": 0.1})).pins["settings"]
    assert not {"axes", "size", "pace"} & pinned.keys()
    assert plan_cell(cell({"method": "tent", "pace": 0.1})).pins["settings"]["pace"] == pytest.approx([0.08, 0.1, 0.12])


# ---------------------------------------------------------------------- folding


def test_cells_with_other_paces_are_one_run_and_the_same_records() -> None:
    cells = [
        recommended(0.0, 0.1),
        recommended(0.0, 0.02, seed=1),
        recommended(0.0, 0.1, corruption="snow", seed=3),
    ]
    plans = [plan_cell(one) for one in cells]
    assert [len(group) for group in make_groups(plans, FOLDS)] == [3]
    folded = run_cells(cells)
    for one, alone in zip(folded, cells, strict=True):
        assert one.times.folded_cells == 3
        assert max(one.results.stepped) > 0
        assert_same(one, run_cell(alone))
    assert len({one.key for one in folded}) == 3


def test_default_rows_of_several_seeds_are_one_run() -> None:
    cells = [cell({}, seed=seed) for seed in (0, 1)]
    assert [len(group) for group in make_groups([plan_cell(one) for one in cells], FOLDS)] == [2]
    for one, alone in zip(run_cells(cells), cells, strict=True):
        assert_same(one, run_cell(alone))


def test_who_never_learns_in_one_cell_and_does_in_another_shares_no_run() -> None:
    """Particles are weighed against those that never learn, so that a cell must not lose its own."""
    cells = [recommended(0.0, 0.1), recommended(0.05, 0.1, seed=1)]
    for group in make_groups([plan_cell(one) for one in cells], FOLDS):
        for one, plan in zip(run_cells([plan.cell for plan in group]), group, strict=True):
            assert_same(one, run_cell(plan.cell))


def test_rates_and_paces_and_other_numbers_of_particles_share_no_run() -> None:
    cells = [
        cell({"pace": 0.1}),
        cell({"lr": 0.1}),
        cell({}),
        cell({"preset": "recommended", "lr": 0.1}),
        cell({"preset": "recommended", "pace": 0.1}),
        cell({"preset": "recommended", "pace": [0.1, 0.2]}),
    ]
    groups = make_groups([plan_cell(one) for one in cells], FOLDS)
    assert [len(group) for group in groups] == [1] * 6
