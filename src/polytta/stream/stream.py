"""A stream: a scenario over some datasets, as a fixed order with a hash and batches read on demand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytta.data.datasets.base import Image, ImageDataset
from polytta.errors import InputError
from polytta.stream.order import Order, Scenario, require_positive


@dataclass(frozen=True, eq=False)
class Batch:
    """Some images and where they come from.

    Attributes:
        images: uint8 height x width x 3 each; sizes may differ.
        labels: Their classes.
        groups: Their groups, where every domain has groups.
        domains: Number of the domain of each.
        items: Index of each in its domain.
        segment: Number of the segment all of them lie in.
        fresh_model: Whether the protocol asks for a fresh source model before this batch.
    """

    images: tuple[Image, ...]
    labels: NDArray[np.int64]
    groups: NDArray[np.int64] | None
    domains: NDArray[np.int32]
    items: NDArray[np.int64]
    segment: int
    fresh_model: bool


@dataclass(frozen=True, eq=False)
class Stream:
    """The order of one scenario over its datasets, one dataset per domain."""

    spec: Scenario
    datasets: tuple[ImageDataset, ...]
    order: Order

    def __len__(self) -> int:
        """Count the images."""
        return len(self.order)

    @cached_property
    def sha256(self) -> str:
        """Hash over the scenario, the names and sizes of the datasets, and every position of the order."""
        digest = hashlib.sha256(json.dumps(self.facts(), sort_keys=True).encode())
        digest.update(self.order.domain.astype("<i4").tobytes())
        digest.update(self.order.item.astype("<i8").tobytes())
        return digest.hexdigest()

    def facts(self) -> dict[str, Any]:
        """What a record has to say about the stream besides its hash."""
        return {
            "scenario": self.spec.scenario,
            "spec": asdict(self.spec),  # type: ignore[call-overload]
            "batch_size": self.spec.batch_size,
            "reset": self.spec.reset,
            "images": len(self),
            "starts": list(self.order.starts),
            "domains": [{"name": d.name, "origin": d.origin, "images": len(d)} for d in self.datasets],
        }

    def bounds(self) -> Iterator[tuple[int, int, int]]:
        """Yield segment, first position and end of each batch."""
        ends = (*self.order.starts[1:], len(self))
        for segment, (start, end) in enumerate(zip(self.order.starts, ends, strict=True)):
            for first in range(start, end, self.spec.batch_size):
                yield segment, first, min(first + self.spec.batch_size, end)

    def batches(self, skip: int = 0) -> Iterator[Batch]:
        """Read batch after batch; ``skip`` leaves out that many at the start without reading them."""
        for segment, first, end in islice(self.bounds(), skip, None):
            fresh = self.spec.reset == "segment" and first == self.order.starts[segment]
            yield self._read(segment, slice(first, end), fresh)

    def _read(self, segment: int, positions: slice, fresh: bool) -> Batch:
        domains, items = self.order.domain[positions], self.order.item[positions]
        samples = [self.datasets[d][int(i)] for d, i in zip(domains, items, strict=True)]
        groups = [group for _, _, group in samples if group is not None]
        return Batch(
            images=tuple(image for image, _, _ in samples),
            labels=np.array([label for _, label, _ in samples], np.int64),
            groups=np.array(groups, np.int64) if len(groups) == len(samples) else None,
            domains=domains,
            items=items,
            segment=segment,
            fresh_model=fresh,
        )


def open_stream(spec: Scenario, datasets: ImageDataset | Sequence[ImageDataset]) -> Stream:
    """Put one or more datasets, each a domain, in the order of a scenario."""
    domains = (datasets,) if isinstance(datasets, ImageDataset) else tuple(datasets)
    require_positive("batch_size", spec.batch_size)
    if not domains:
        raise InputError("datasets: got none; allowed is at least one.")
    for dataset in domains:
        if not len(dataset):
            raise InputError(f"datasets: got {dataset.name}, which is empty; allowed are datasets with images.")
        if dataset.classes != domains[0].classes:
            raise InputError(
                f"datasets: got {dataset.name} and {domains[0].name} of different classes; allowed is one set."
            )
    return Stream(spec, domains, spec.order([dataset.labels for dataset in domains]))
