import numpy as np
import pytest
from tests.stream.toys import toy

from polytta.errors import InputError
from polytta.stream import SCENARIOS, Batch1, Chain, Continual, LabelShift, Markov, Mild, Mixed, open_stream

SPECS = [
    Mild(batch_size=7),
    Batch1(),
    Continual(batch_size=7),
    Mixed(batch_size=7),
    LabelShift(batch_size=7, ratio=5.0, draws_per_class=6),
    Markov(batch_size=7),
]


def domains():
    return [toy("a"), toy("b"), toy("c")]


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.scenario)
def test_same_spec_same_bytes_and_other_seed_other_bytes(spec):
    first, second = open_stream(spec, domains()), open_stream(spec, domains())
    assert first.sha256 == second.sha256
    assert first.order.item.tobytes() == second.order.item.tobytes()
    other = open_stream(type(spec)(**{**vars(spec), "seed": 7}), domains())
    assert other.sha256 != first.sha256


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.scenario)
def test_batches_cover_the_order_and_stay_within_segments(spec):
    stream = open_stream(spec, domains())
    batches = list(stream.batches())
    assert np.concatenate([b.items for b in batches]).tolist() == stream.order.item.tolist()
    assert all(1 <= len(b.labels) <= spec.batch_size for b in batches)
    for batch in batches:
        for image, label, domain, item in zip(batch.images, batch.labels, batch.domains, batch.items, strict=True):
            assert image[0, 0, 0] == item
            assert label == stream.datasets[domain].labels[item]
    fresh = [b.fresh_model for b in batches]
    assert sum(fresh) == (len(stream.order.starts) if spec.reset == "segment" else 0)


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.scenario)
def test_skipping_is_the_same_as_reading_on(spec):
    stream = open_stream(spec, domains())
    whole = [b.items.tolist() for b in stream.batches()]
    assert [b.items.tolist() for b in stream.batches(skip=3)] == whole[3:]


def test_pinned_hash():
    """The order of a spec must not move between versions of this library or of NumPy."""
    hashes = {s.scenario: open_stream(s, domains()).sha256[:16] for s in SPECS}
    assert hashes == PINNED


PINNED = {
    "mild": "5d885248ddcb5e77",
    "batch1": "7d4cb7747db9596f",
    "continual": "a44334d26c0739f3",
    "mixed": "618bd1c7402c33ff",
    "label_shift": "940b5f8b48f5598b",
    "markov": "a8ce6d0d843d772e",
}


def test_hash_depends_on_names_batch_size_and_reset():
    base = open_stream(Mild(), domains()).sha256
    assert open_stream(Continual(), domains()).sha256 != base
    assert open_stream(Mild(batch_size=32), domains()).sha256 != base
    assert open_stream(Mild(), [toy("a"), toy("b"), toy("d")]).sha256 != base


def test_one_dataset_need_not_be_in_a_list():
    assert open_stream(Mild(), toy()).sha256 == open_stream(Mild(), [toy()]).sha256


def test_groups_are_given_when_all_have_them():
    batch = next(open_stream(Mild(), toy(groups=True)).batches())
    assert batch.groups.tolist() == (batch.labels % 2).tolist()
    mixed = open_stream(Mixed(batch_size=40), [toy("a", groups=True), toy("b")])
    assert next(mixed.batches()).groups is None


def test_names():
    assert list(SCENARIOS) == ["mild", "label_shift", "batch1", "mixed", "continual", "markov"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (Mild(batch_size=0), "batch_size: got 0; allowed is at least 1"),
        (Mild(limit=0), "limit: got .*; allowed is at least 1"),
        (Mixed(limit=-1), "limit: got .*; allowed is at least 1"),
        (LabelShift(ratio=0.5), "ratio: got .*; allowed is 1 to infinity"),
        (LabelShift(ratio=float("nan")), "ratio: got .*; allowed is 1 to infinity"),
        (LabelShift(draws_per_class=0), "draws_per_class: got 0"),
        (Markov(images="again"), "length: got None"),
        (Markov(length=1000), "length: got 1000; .* at most 60"),
        (Markov(images="twice"), "images: got 'twice'"),
    ],
)
def test_refusals(spec, message):
    with pytest.raises(InputError, match=message):
        open_stream(spec, domains())


@pytest.mark.parametrize("kwargs", [{"stay": 1.5}, {"dwell": 0}, {"ratio": 0.0}, {"step": "back"}])
def test_chain_refusals(kwargs):
    with pytest.raises(InputError):
        Chain(**kwargs)


def test_refuses_no_data_empty_data_and_unlike_classes():
    with pytest.raises(InputError, match="datasets: got none"):
        open_stream(Mild(), [])
    with pytest.raises(InputError, match="got nothing, which is empty"):
        open_stream(Mild(), toy("nothing", per_class=0))
    with pytest.raises(InputError, match="of different classes"):
        open_stream(Mild(), [toy("a"), toy("b", classes=3)])
