"""The plain loop that polytta is timed against does the same work: it gives the same answers."""

import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from tests.lab.bench.networks import reading
from tests.scripts.loading import script as loaded

import polytta
from polytta.methods import WATTP, WATTS
from polytta.methods.watt import WATT

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return loaded("time_clip")


@pytest.mark.parametrize("flips", [False, True])
@pytest.mark.parametrize("method", [WATTS(rounds=2), WATTP(rounds=2)], ids=lambda one: one.name)
def test_the_plain_loop_is_the_method(script: ModuleType, method: WATT, flips: bool) -> None:
    network = reading().module
    x = torch.randn(6, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    adapted = polytta.adapt(
        network,
        method,
        particles=1,
        optimizer="adam",
        lr=1e-3,
        exclude=None,
        views="flips" if flips else "none",
    )
    plain = script.PlainWATT(network, method, flips=flips)
    first = plain(x)
    torch.testing.assert_close(adapted(x), first, atol=1e-4, rtol=1e-4)
    assert torch.equal(plain(x), first), "every batch starts from the source model"
    assert (first - network(x).log_softmax(dim=-1)).abs().max() > 1e-2, "it has learnt"


def test_every_row_of_the_grid_is_timed_and_quick_ones_are_short(script: ModuleType) -> None:
    rows = script.rows_of(script.GRID, "fp32", quick=True)
    assert set(script.PLAIN) | set(script.AGAINST) <= set(rows)
    assert rows["watt_s_aug"]["method"] == {"name": "watt_s", "order": "own", "steps": 1, "rounds": 1}
    assert script.rows_of(script.GRID, "fp32", quick=False)["watt_p"]["method"] == "watt_p"


def test_rows_are_timed_in_turn_and_one_that_ends_is_named(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    monkeypatch.setitem(sys.modules, "time_clip", script)
    how = {"device": "cpu", "precision": "fp32", "engine": "auto", "quick": True}
    options = Namespace(**how, repeats=3, warmup=1, seconds=0.0)
    ((own,),) = script.measured(["source", "no such row"], 1, options)
    assert (own.row, own.batch, own.engine, len(own.milliseconds)) == ("source", 1, "folded", 2)
    assert "no such row: it ended before it was timed" in capsys.readouterr().out
