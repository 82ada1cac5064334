"""What is measured is what the tables say; how fast it is, only a GPU can tell."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from polytta.errors import InputError
from polytta.lab.perf import run
from polytta.lab.perf.clock import Timing
from polytta.lab.perf.goals import BUNDLED, GOALS
from polytta.lab.perf.measurements import Measurement, Measurements


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> run._Bench:
    """The bundled model on the CPU, every call made once and none timed."""

    def call_once(call: Callable[[], object]) -> Timing:
        call()
        return Timing(2.0, 3.0)

    monkeypatch.setattr(run, "_device", lambda: "cpu")
    monkeypatch.setattr(run, "time_calls", call_once)
    return run._Bench(BUNDLED, 2, repeats=3)


def test_a_step_is_measured_under_its_own_name(bench: run._Bench) -> None:
    single = bench.step("none", 1, "loop", "fp32")
    several = bench.step("grad", 3, "folded", "fp32", populations=2, particles_at_once=2)
    assert (single.model, single.batch, single.variant, single.particles) == (BUNDLED, 2, "none", 1)
    assert (single.engine, single.precision, single.particles_at_once) == ("loop", "fp32", None)
    assert (several.engine, several.populations, several.particles_at_once) == ("folded", 2, 2)
    # Only what is compared with a goal is measured again and again.
    assert (len(single.milliseconds), len(several.milliseconds)) == (1, 3)
    # Three passes against five, of two populations of three particles.
    assert several.flops / single.flops == pytest.approx(2 * 3 * 5 / 3)


def test_the_plain_model_and_its_second_derivative(bench: run._Bench) -> None:
    forward, twice = bench.forward(), bench.second_derivative()
    assert (forward.variant, twice.variant) == ("forward", "second derivative")
    assert {m.engine for m in (forward, twice)} == {"eager"}
    assert twice.flops == 4 * forward.flops > 0


def test_the_reference_is_the_public_way_and_leaves_the_model_alone(bench: run._Bench) -> None:
    before = {name: value.clone() for name, value in bench.network.state_dict().items()}
    reference = bench.reference()
    assert (reference.variant, reference.engine, reference.precision) == ("reference", "plain", "fp32")
    assert len(reference.milliseconds) == 3
    assert all(torch.equal(value, before[name]) for name, value in bench.network.state_dict().items())


def test_what_is_measured_again_takes_the_place_of_the_older(bench: run._Bench) -> None:
    def measured_by(device: str, *found: Measurement) -> Measurements:
        return Measurements(device, torch.__version__, 1.0, list(found))

    older, grad, other = replace(bench.reference(), engine="loop"), bench.step("grad", 3), bench.step("none", 3)
    newer = [replace(bench.reference(), memory=7.0), replace(grad, milliseconds=[1.0])]
    both = measured_by("old", older, grad, other).renewed(measured_by("new", *newer))
    assert both == Measurements("new", torch.__version__, 1.0, [*newer, other], runs=2)


@pytest.mark.skipif(torch.cuda.is_available(), reason="measures more where there is a CUDA device")
def test_a_quick_run_without_a_gpu_is_tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "ON_A_CPU", {(BUNDLED, 1): 1.0})
    measured = run.measure_all(quick=True).measured
    assert [(m.variant, m.engine) for m in measured] == [
        ("forward", "eager"),
        ("reference", "plain"),
        ("grad", "folded"),
    ]
    assert all(m.median > 0 for m in measured)


@pytest.mark.skipif(torch.cuda.is_available(), reason="measures where there is a CUDA device")
def test_without_a_gpu_there_is_nothing_to_measure() -> None:
    with pytest.raises(InputError, match="without a CUDA device"):
        run.measure_all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_bundled_model_is_measured_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "GOALS", {(BUNDLED, 1): GOALS[BUNDLED, 1]})
    measurements = run.measure_all(quick=True)
    assert [m.variant for m in measurements.measured] == ["forward", "reference", "grad", "grad"]
    assert [m.precision for m in measurements.measured] == ["fp32", "fp32", "fp32", "bf16"]
    assert all(0 < time < 1000 for m in measurements.measured for time in m.milliseconds)
    assert 0 < measurements.roofline(measurements.find(BUNDLED, 1, "grad", 3)) < 1
