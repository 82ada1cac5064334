from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from polytta.errors import StateError
from polytta.lab.bench.plan import plan_cell
from polytta.lab.bench.run import run_group
from polytta.lab.demo import run as demo_run
from polytta.lab.demo.options import CLASSIFIER, ROWS, DemoOptions
from polytta.lab.demo.run import EXECUTION, run_demo

TWO_ROWS = {name: ROWS[name] for name in ("Source", "Tent")}


def options(rows: Mapping[str, Mapping[str, Any]] = TWO_ROWS) -> DemoOptions:
    return DemoOptions(images=3, seed=5, subject=replace(CLASSIFIER, rows=rows))


def test_every_cell_is_run_as_the_benchmark_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_run, "usable_cores", lambda: 1)
    run = run_demo(options())
    cells = options().grid().cells()
    assert set(run.records) == {(cell.variant, cell.corruptions[0]) for cell in cells}
    (alone,) = run_group([plan_cell(cells[-1])], lambda images: None, EXECUTION)
    own = run.records[cells[-1].variant, cells[-1].corruptions[0]]
    assert own.key == alone.key
    assert own.results == alone.results


def test_a_cell_that_fails_ends_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_run, "usable_cores", lambda: 1)
    monkeypatch.setattr("polytta.lab.bench.groups.run_group", _fails)
    with pytest.raises(
        StateError, match=r"^demo: got a cell that failed, .*\(ZeroDivisionError: nothing works\); allowed "
    ):
        run_demo(options())


def _fails(*arguments: object) -> None:
    raise ZeroDivisionError("nothing works")
