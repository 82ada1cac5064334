"""Parts of one's own, from a file beside the grid: they run, and records know which version of the file made them."""

import importlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.lab.bench.cells import run_cell, tiny_cell
from tests.lab.bench.networks import TINY

from polytta.errors import StateError
from polytta.lab.bench import Execution, Options, Record, benchmark, read_grid
from polytta.lab.bench.plan import plan_cell
from polytta.lab.bench.run import run_group

METHOD = """
from dataclasses import dataclass
from typing import ClassVar

from polytta.methods import Tent
from polytta.roles.measures import entropy


@dataclass(frozen=True)
class Mine(Tent):
    name: ClassVar[str] = "mine"
    factor: float = 1.0

    def sample_losses(self, logits):
        return SIGN * self.factor * entropy(logits)


def brighter(x):
    return x + 0.1
"""
GRID = f"""
models = ["{TINY}"]
corruptions = ["fog"]
variants = ["row"]
methods = ["my_method_SUFFIX:Mine"]
set = ["lenses=unchanged,my_method_SUFFIX:brighter"]
lrs = [0.05]
images = 12

[define.row]
method = {{name = "my_method_SUFFIX:Mine", factor = 2.0}}
particles = 2
"""
QUIET = Options(jobs=1, progress=False)
# Each test has a module of its own: an imported one would be known to the next.
_numbers = iter(range(1000))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A method and a grid that uses it, in a folder that can be imported from."""
    suffix = str(next(_numbers))
    name = f"my_method_{suffix}"
    write(tmp_path / f"{name}.py", 1)
    (tmp_path / "grid.toml").write_text(GRID.replace("SUFFIX", suffix))
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


def write(path: Path, sign: int) -> None:
    path.write_text(METHOD.replace("SIGN", str(sign)))
    # Two versions within one tick of the clock are one to whoever looks at the time of a file.
    os.utime(path, ns=(10**18 * (2 + sign),) * 2)
    importlib.invalidate_caches()


def test_a_method_from_a_file_is_resumed_and_run_again_when_the_file_has_changed(tmp_path: Path, module: str) -> None:
    grid, out = read_grid(tmp_path / "grid.toml"), tmp_path / "out"
    first = benchmark(grid, out, QUIET)
    assert (first.finished_now, first.failures) == (2, [])
    assert {record.cell.variant for record in first.records} == {"row", f"{module}:Mine"}
    again = benchmark(grid, out, QUIET)
    assert (again.finished_before, again.finished_now) == (2, 0)
    write(tmp_path / f"{module}.py", -1)
    # What is loaded is still what made the records.
    assert benchmark(grid, out, QUIET).finished_before == 2
    importlib.reload(sys.modules[module])
    changed = benchmark(grid, out, QUIET)
    assert (changed.finished_before, changed.finished_now) == (0, 2)
    plugins = {json.dumps(record.pins["plugins"], sort_keys=True) for record in changed.records}
    assert len(plugins) == 2
    results = {record.results.nll for record in changed.records if record.cell.variant == "row"}
    assert len(results) == 2


def test_workers_find_it(tmp_path: Path, module: str) -> None:
    summary = benchmark(read_grid(tmp_path / "grid.toml"), tmp_path / "out", replace(QUIET, jobs=2))
    assert summary.failures == []
    assert summary.finished_now == 2


def test_a_file_that_changed_after_planning_makes_no_record(tmp_path: Path, module: str) -> None:
    plan = plan_cell(tiny_cell("tent", {"method": f"{module}:Mine"}))
    assert plan.pins["plugins"].keys() == {"method"}
    write(tmp_path / f"{module}.py", -1)
    importlib.reload(sys.modules[module])
    with pytest.raises(StateError, match="has changed"):
        run_group([plan], lambda images: None, Execution())


def test_what_polytta_brings_needs_no_file_to_be_pinned(tmp_path: Path) -> None:
    record = run_cell(tiny_cell("tent"))
    assert "plugins" not in record.pins
    assert Record.read(record.write(tmp_path)).key == record.key
