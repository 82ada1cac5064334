"""Images kept on a device are those a stream would have read, and make room when there is none."""

from dataclasses import replace

import pytest
import torch
from tests.lab.bench.records import CELL

from polytta.lab.bench import feed
from polytta.lab.bench.data import open_cell_stream
from polytta.models import create
from polytta.stream import Stream

ONE_SET = 3 * 32 * 32 * 4 * 20


@pytest.fixture
def streams() -> list[Stream]:
    return [open_cell_stream(replace(CELL, corruption=name, images=20)) for name in ("contrast", "fog", "snow")]


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    memory = [10**9, 10**9]
    monkeypatch.setattr(feed, "_memory", lambda device: tuple(memory))
    return memory


def test_batches_are_what_the_stream_reads(streams: list[Stream], room: list[int]) -> None:
    source, shelf = create("bundled/cifar10_resnet_gn"), feed.Shelf()
    assert shelf.offers(streams[:2], source, "cpu")
    read = zip(*(stream.batches() for stream in streams[:2]), strict=True)
    for got, group in zip(shelf.batches(streams[:2], "cpu"), read, strict=True):
        expected = torch.stack([source.preprocessing(list(batch.images)) for batch in group])
        assert torch.equal(got, expected)


def test_sets_stay_until_their_room_is_needed(streams: list[Stream], room: list[int]) -> None:
    source, shelf = create("bundled/cifar10_resnet_gn"), feed.Shelf()
    for stream in streams[:2]:
        assert shelf.offers([stream], source, "cpu")
    assert shelf.bytes == 2 * ONE_SET
    room[1] = 2 * ONE_SET * 4
    assert shelf.offers(streams[2:], source, "cpu")
    assert shelf.bytes == 2 * ONE_SET
    assert id(streams[0].datasets[0]) not in shelf._kept
    room[0] = ONE_SET
    assert not shelf.offers(streams[:1], source, "cpu")
    assert shelf.offers(streams[2:], source, "cpu")
