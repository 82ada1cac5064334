"""Several threads on one adapter: no update is lost, and predictions are those of a state that was there."""

import copy
import pickle
import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.methods import SAR, DeYO, Method, Tent
from polytta.particles.precision import plain_attention
from polytta.system.turn import Turn


def in_threads(count: int, work: Callable[[int], None]) -> None:
    wrong: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


@pytest.mark.parametrize(
    "method", [Tent(), SAR(), DeYO(entropy_threshold=0.9, plpd_threshold=-0.2)], ids=lambda m: m.name
)
@pytest.mark.parametrize("engine", ["loop", "folded", "static"])
def test_no_update_is_lost(method: Method, engine: str) -> None:
    adapted = polytta.adapt(small_model("batch"), method, engine=engine, exclude=None, lr=1e-3)
    x = small_stream(1, 6)[0]

    def learns(_: int) -> None:
        for _ in range(15):
            adapted(x)

    in_threads(4, learns)
    alone = polytta.adapt(small_model("batch"), method, engine=engine, exclude=None, lr=1e-3)
    for _ in range(60):
        alone(x)
    assert adapted.totals.steps == 60
    assert torch.equal(adapted.theta, alone.theta), "the same batch in any order is the same"


@pytest.mark.parametrize("kind", ["batch", "layer"])
def test_predictions_beside_learning_are_of_states_that_were_there(kind: str) -> None:
    """Every prediction in one thread equals that of a state another thread has been in."""
    method, x = SAR(), small_stream(1, 6)[0]
    options = {"exclude": None, "lr": 0.05, "aggregate": "evidence"}
    alone = polytta.adapt(small_model(kind), method, **options)  # type: ignore[arg-type]
    possible = [alone.predict(x)]
    for _ in range(40):
        alone(x)
        possible.append(alone.predict(x))
    adapted = polytta.adapt(small_model(kind), method, **options)  # type: ignore[arg-type]
    seen: list[Tensor] = []

    def work(number: int) -> None:
        for _ in range(40):
            if number == 0:
                adapted(x)
            else:
                seen.append(adapted.predict(x))

    in_threads(3, work)
    for answer in seen:
        assert any(torch.equal(answer, one) for one in possible)


def test_torchs_fused_attention_is_put_back_by_the_last() -> None:
    assert torch.backends.mha.get_fastpath_enabled()
    barrier = threading.Barrier(2)

    def work(number: int) -> None:
        if number:
            barrier.wait()
        with plain_attention():
            if not number:
                barrier.wait()
            barrier.wait()
            assert not torch.backends.mha.get_fastpath_enabled()
            if number:
                barrier.wait()
        if not number:
            barrier.wait()

    in_threads(2, work)
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_turn_is_copied_and_pickled_as_a_fresh_one() -> None:
    turn = Turn()
    with turn:
        for other in (copy.deepcopy(turn), pickle.loads(pickle.dumps(turn))):
            taken: list[bool] = []
            in_threads(1, lambda _, other=other, taken=taken: taken.append(other._lock.acquire(blocking=False)))
            assert taken == [True]
        with turn:
            pass


def test_particles_in_a_loop_do_not_meet_in_the_network_they_share() -> None:
    adapted = polytta.adapt(
        small_model("group"), "tent", particles=3, lr=[0.0, 0.3, 0.6], engine="loop", exclude=None, guard="off"
    )
    stream = small_stream(4, 6)
    for x in stream:
        adapted(x)
    expected = adapted.predict(stream[0])

    def predicts(_: int) -> None:
        for _ in range(40):
            assert torch.equal(adapted.predict(stream[0]), expected)

    in_threads(4, predicts)
