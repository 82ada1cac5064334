"""Numbers beside the guard's verdict: what they are, the same in every engine, and which of them it heeds."""

import json
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from tests.dispatched import ON_THE_HOST, called_by
from torch import Tensor

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.methods import DeYO, Tent
from polytta.report.measures import disagreement_with_others
from polytta.roles.measures import entropy

SELECTIVE = DeYO(0.9, 0.0)


@dataclass(frozen=True)
class Steep(Tent):
    """Losses without a finite slope, of answers that are as they should be."""

    name: ClassVar[str] = "steep"

    def sample_losses(self, logits: Tensor) -> Tensor:
        return (0 * logits.sum(dim=-1)).sqrt()


def report_of(adapted: polytta.Adapted) -> polytta.report.StepReport:
    assert adapted.last is not None
    return adapted.last


def test_disagreement_with_others_against_loops() -> None:
    logits = torch.randn(6, 20, 4)
    told = logits.argmax(dim=-1)
    found = disagreement_with_others(logits, populations=2)
    for row in range(6):
        others = [other for other in range(row // 3 * 3, row // 3 * 3 + 3) if other != row]
        shares = [float((told[row] != told[other]).double().mean()) for other in others]
        assert float(found[row]) == pytest.approx(sum(shares) / 2)
    assert disagreement_with_others(logits[:2], populations=2).tolist() == [0, 0]


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
def test_signals_are_what_they_are_called(engine: str) -> None:
    rate, (x,) = 1e-3, small_stream(1, 6)
    # The first step of plain descent is the gradient times the rate.
    options = {"optimizer": {"name": "sgd", "momentum": 0.0}, "lr": rate, "exclude": None, "engine": engine}
    adapted = polytta.adapt(small_model("group"), SELECTIVE, particles=3, lr_spread=0.0, **options)
    adapted(x)
    report = report_of(adapted)
    moved = (adapted.theta - adapted.source).norm(dim=1)
    entropies = entropy(report.logits).mean(dim=1) / torch.log(torch.tensor(5.0))
    for row, one in enumerate(report.signals):
        assert one.gradient_norm == pytest.approx(float(moved[row]) / rate, rel=1e-6)
        assert one.selected_share == pytest.approx(report.selected["plpd"][row] / 6)
        assert one.entropy == pytest.approx(float(entropies[row]), rel=1e-6)
        assert one.drift == pytest.approx(float(moved[row] / adapted.source.norm()), rel=1e-6)
        assert (one.loss, one.broken) == (report.loss[row], 0)
    assert 0 < min(one.selected_share for one in report.signals) < 1, "the test needs a selection"


def test_engines_tell_the_same_of_every_method() -> None:
    for method in ("tent", "sar", SELECTIVE, "memo", "source"):
        told = []
        for engine in ("folded", "static", "loop"):
            adapted = polytta.adapt(small_model("group"), method, lr=1e-3, exclude=None, engine=engine)
            for x in small_stream(2, 6):
                adapted(x)
            told.append(torch.tensor([astuple(one) for one in report_of(adapted).signals], dtype=torch.float64))
        for other in told[1:]:
            assert torch.allclose(other, told[0], rtol=0, atol=1e-6), method


def test_populations_and_batches_without_a_usable_image_have_signals() -> None:
    adapted = polytta.adapt(small_model("group"), "tent", exclude=None, populations=2)
    adapted(torch.stack(small_stream(2, 4)))
    report = report_of(adapted)
    assert report.signals[3:] == report.population(1).signals
    alone = polytta.adapt(small_model("group"), "tent", exclude=None)
    alone(torch.full_like(small_stream(1, 4)[0], torch.nan))
    assert {(one.gradient_norm, one.selected_share) for one in report_of(alone).signals} == {(0, 0)}


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
def test_a_gradient_that_is_not_finite_is_a_warning(engine: str, tmp_path: Path) -> None:
    x = small_stream(1, 6)[0]
    adapted = polytta.adapt(
        small_model("group"), [Steep(), Tent()], particles=2, exclude=None, engine=engine, guard="default"
    )
    adapted.audit(tmp_path / "audit.jsonl")
    adapted(x)
    report = report_of(adapted)
    assert report.health == ("warn", "ok")
    assert [one.gradient_norm == torch.inf for one in report.signals] == [True, False]
    assert torch.equal(adapted.theta[0], adapted.source)
    (line,) = (json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines())
    assert line["gradient_norm"] is None
    assert line["selected_share"] == 1
    free = polytta.adapt(small_model("group"), Steep(), particles=1, exclude=None, engine=engine, guard="off")
    free(x)
    assert report_of(free).health == ("ok",), "nobody asked"


def test_signals_cost_no_reading_within_a_step() -> None:
    adapted = polytta.adapt(small_model("group"), SELECTIVE, lr=1e-3, exclude=None, engine="static")
    stream = small_stream(2, 6)
    adapted(stream[0])
    step, state = next(iter(adapted._session._steps.values()))[0], adapted._session.state
    assert not called_by(lambda: step(state, stream[1].unsqueeze(0))) & ON_THE_HOST
