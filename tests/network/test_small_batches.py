"""Methods that go by the statistics of a batch do not where it is very small, unless they are told to."""

import warnings

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import PolyttaWarning
from polytta.network.statistics import FEWEST_IMAGES

FEW = pytest.warns(PolyttaWarning, match=f"fewer than {FEWEST_IMAGES} images")


@pytest.mark.parametrize("engine", ["folded", "static", "loop"])
@pytest.mark.parametrize("size", [1, FEWEST_IMAGES - 1])
def test_few_images_are_blended_and_it_is_said_once(size: int, engine: str) -> None:
    stream = small_stream(3, size)
    adapted = polytta.adapt(small_model("batch"), "tent", lr=0.1, exclude=None, engine=engine)
    blended = polytta.adapt(small_model("batch"), "tent", lr=0.1, exclude=None, engine=engine, statistics="blend")
    with FEW as seen:
        answers = [adapted(x) for x in stream]
    assert len(seen) == 1
    assert all(torch.equal(answer, blended(x)) for answer, x in zip(answers, stream, strict=True))
    assert torch.allclose(adapted.freeze(0)(stream[0]), adapted.particles_log_probs(stream[0])[0])


@pytest.mark.parametrize(
    ("size", "arguments"),
    [
        (FEWEST_IMAGES, {}),
        (2, {"statistics": "batch"}),
        (2, {"preset": "official"}),
        (2, {"preset": "paper"}),
    ],
)
def test_enough_images_and_whoever_asks_have_statistics_of_the_batch(size: int, arguments: dict[str, object]) -> None:
    x = small_stream(1, size)[0]
    told = polytta.adapt(small_model("batch"), "norm", exclude=None, **arguments)(x)
    assert torch.equal(told, polytta.adapt(small_model("batch"), "norm", exclude=None, statistics="batch")(x))


def test_every_batch_goes_by_its_own_size() -> None:
    """As the last batch of a data set does."""
    large, small = small_stream(1, FEWEST_IMAGES)[0], small_stream(1, 1, seed=3)[0]
    adapted = polytta.adapt(small_model("batch"), "norm", exclude=None)
    for _ in range(2):
        assert torch.equal(adapted(large), polytta.adapt(small_model("batch"), "norm", exclude=None)(large))
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            told = adapted(small)
        blend = polytta.adapt(small_model("batch"), "norm", exclude=None, statistics="blend")
        assert torch.equal(told, blend(small))


def test_a_stored_stream_goes_on_with_the_same_statistics(tmp_path: object) -> None:
    x = small_stream(1, 2)[0]
    adapted = polytta.adapt(small_model("batch"), "tent", exclude=None)
    with FEW:
        adapted(x)
    adapted.save(f"{tmp_path}/state")
    loaded = polytta.load(f"{tmp_path}/state", small_model("batch"))
    with FEW:
        assert torch.equal(loaded(x), adapted(x))


def test_the_recommended_population_needs_no_warning() -> None:
    polytta.adapt(small_model("batch"))(small_stream(1, 1)[0])
    polytta.adapt(small_model("group"), "tent", exclude=None)(small_stream(1, 1)[0])
