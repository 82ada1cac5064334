import time

import pytest

from polytta.lab.bench.costs import Clock


def test_the_clock_goes_between_stops_and_not_during_them() -> None:
    clock = Clock("cpu")
    with clock.stopped():
        time.sleep(0.05)
    time.sleep(0.02)
    with clock.stopped():
        time.sleep(0.05)
    assert 0.02 <= clock.seconds < 0.05


def test_waiting_costs_no_processor_time() -> None:
    clock = Clock("cpu")
    with clock.stopped():
        pass
    time.sleep(0.1)
    with clock.stopped():
        pass
    waited = clock.processor_seconds
    start = time.process_time()
    while time.process_time() - start < 0.05:
        pass
    with clock.stopped():
        pass
    assert waited < 0.05 <= clock.processor_seconds - waited
    assert clock.seconds == pytest.approx(0.15, rel=2.0)
