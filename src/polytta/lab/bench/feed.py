"""Batches on the device: the same place of every stream of a group at once.

Rows of a table see the same images again and again. On a GPU with room for them they are preprocessed and moved there
once, and batches are picked from what lies there; elsewhere they are made many at a time as the streams go on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polytta.data.datasets import ImageDataset
from polytta.lab.bench.costs import Clock
from polytta.models import SourceModel
from polytta.stream import Stream

# Preprocessed images held at once where they are not kept.
_FEED_BYTES = 2**26
# Of a GPU's memory, and of what is free of it, how much kept images may take: populations need the rest.
_SHARE_KEPT = 0.25
_AT_ONCE = 2048


@dataclass(frozen=True)
class Kept:
    """Some images of a dataset: where each of them lies, -1 for the others."""

    dataset: ImageDataset
    places: NDArray[np.int64]
    images: Tensor


class Shelf:
    """Preprocessed images on a device, for one source model at a time."""

    def __init__(self) -> None:
        self._of: tuple[object, str] | None = None
        self._kept: dict[int, Kept] = {}

    def offers(self, streams: Sequence[Stream], source: SourceModel, device: str) -> bool:
        """Whether all images of these streams lie on the device now."""
        if self._of != (source.preprocessing, device):
            self._of, self._kept = (source.preprocessing, device), {}
        wanted = _wanted(streams)
        missing = {
            key: (dataset, items)
            for key, (dataset, items) in wanted.items()
            if key not in self._kept or (self._kept[key].places[items] < 0).any()
        }
        needed = 3 * source.preprocessing.size**2 * 4 * sum(len(items) for _, items in missing.values())
        free, whole = _memory(device)
        for idle in [key for key in self._kept if key not in wanted]:
            if needed + self.bytes > _SHARE_KEPT * whole:
                del self._kept[idle]
        if needed > _SHARE_KEPT * free:
            return False
        for key, (dataset, items) in missing.items():
            parts = [
                source.preprocessing.normalised(
                    source.preprocessing.fitted([dataset[int(n)][0] for n in items[start : start + _AT_ONCE]]).to(
                        device
                    )
                )
                for start in range(0, len(items), _AT_ONCE)
            ]
            places = np.full(len(dataset), -1)
            places[items] = np.arange(len(items))
            self._kept[key] = Kept(dataset, places, torch.cat(parts))
        return True

    @property
    def bytes(self) -> int:
        """That the kept images take."""
        return sum(kept.images.nbytes for kept in self._kept.values())

    def batches(self, streams: Sequence[Stream], device: str) -> Iterator[Tensor]:
        """(G, B, C, H, W)."""
        here = {key: self._kept[key] for key in _wanted(streams)}
        first = dict(zip(here, np.cumsum([0, *(len(kept.images) for kept in here.values())]), strict=False))
        every = torch.cat([kept.images for kept in here.values()])
        places = []
        for stream in streams:
            own = np.empty(len(stream), np.int64)
            for number, dataset in enumerate(stream.datasets):
                own_place = stream.order.domain == number
                own[own_place] = first[id(dataset)] + here[id(dataset)].places[stream.order.item[own_place]]
            places.append(torch.as_tensor(own))
        chosen = torch.stack(places).to(device)
        for _, begin, end in streams[0].bounds():
            yield every[chosen[:, begin:end]]


def _memory(device: str) -> tuple[int, int]:
    """Free and whole, in bytes."""
    return torch.cuda.mem_get_info(device)


def _wanted(streams: Sequence[Stream]) -> dict[int, tuple[ImageDataset, NDArray[np.int64]]]:
    """The datasets, and what the streams take of them."""
    taken: dict[int, tuple[ImageDataset, list[NDArray[np.int64]]]] = {}
    for stream in streams:
        for number, dataset in enumerate(stream.datasets):
            taken.setdefault(id(dataset), (dataset, []))[1].append(stream.order.item[stream.order.domain == number])
    return {key: (dataset, np.unique(np.concatenate(parts))) for key, (dataset, parts) in taken.items()}


SHELF = Shelf()
"""What this process keeps."""


def batches(streams: Sequence[Stream], source: SourceModel, device: str, clock: Clock) -> Iterator[Tensor]:
    """(G, B, C, H, W) preprocessed batches; reading and preprocessing are not on the clock."""
    bounds = [list(stream.bounds()) for stream in streams]
    if any([own[1:] for own in bound] != [own[1:] for own in bounds[0]] for bound in bounds):
        raise RuntimeError("streams of one group have batches of different sizes: labels would be mistaken")
    with clock.stopped():
        kept = device.startswith("cuda") and SHELF.offers(streams, source, device)
    if kept:
        yield from SHELF.batches(streams, device)
        with clock.stopped():
            return
    readers = zip(*(stream.batches() for stream in streams), strict=True)
    size = source.preprocessing.size
    steps = max(1, _FEED_BYTES // (len(streams) * streams[0].spec.batch_size * 3 * size * size * 4))
    while True:
        with clock.stopped():
            part = list(islice(readers, steps))
            if not part:
                return
            images = [image for group in part for batch in group for image in batch.images]
            ready = source.preprocessing(images).to(device)
        start = 0
        for group in part:
            count = len(group[0].images)
            taken = ready[start : start + len(group) * count]
            yield taken.unflatten(0, (len(group), count))
            start += len(taken)
