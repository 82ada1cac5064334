"""The same adaptation to the same images from several seeds: where each of them ends.

A seed decides the order of the images and the method's random numbers, never which images there are: accuracies that
differ because some seeds drew easier images would say nothing about the adaptation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from polytta.adapter import Adapted
from polytta.api import adapt_with
from polytta.data.datasets.base import Image
from polytta.errors import ConfigError
from polytta.lab.bench.cell import Cell
from polytta.lab.bench.data import open_cell_stream, prepare
from polytta.lab.bench.execution import Execution
from polytta.lab.bench.plan import check_classes, source_model
from polytta.models import SourceModel
from polytta.stream import Stream


@dataclass(frozen=True, eq=False)
class Solution:
    """Where one seed ended.

    Attributes:
        seed: of the order of the stream and of the method.
        theta: (D,) final parameters, on the CPU; the mean over particles where there are several.
        accuracy: percent of the stream that was right before it was learnt from.
    """

    seed: int
    theta: Tensor
    accuracy: float


@dataclass(frozen=True, eq=False)
class Solutions:
    """Several seeds over one model, and the images all of them are judged on."""

    cell: Cell
    source: SourceModel
    adapted: Adapted
    found: tuple[Solution, ...]
    x: Tensor
    labels: Tensor

    @property
    def thetas(self) -> Tensor:
        """(S, D) final parameters, on the CPU."""
        return torch.stack([solution.theta for solution in self.found])

    @property
    def start(self) -> Tensor:
        """(D,) parameters of the source model, on the CPU."""
        return self.adapted.source.cpu()


def find_solutions(cell: Cell, seeds: Sequence[int], judged_on: int) -> Solutions:
    """Runs the cell once per seed; a progress bar shows on stderr.

    Args:
        cell: what to run; its own seed chooses the images where it asks for a part of the data.
        seeds: at least two different ones.
        judged_on: images of the stream that solutions are later compared on.
    """
    if len(set(seeds)) < 2 or len(set(seeds)) != len(seeds):
        raise ConfigError(f"seeds: got {list(seeds)}; allowed are two or more different ones.")
    device = Execution().torch_device
    source = source_model(cell, device)
    stream = open_cell_stream(cell)
    check_classes(cell, stream, source, "dataset")
    prepare([stream])
    found = []
    with tqdm(total=len(seeds) * len(stream), unit="image", desc="adapting") as bar:
        for seed in seeds:
            settings = replace(cell, seed=seed).to_settings(num_classes=source.num_classes)
            adapted = adapt_with(settings, source.module)
            right = 0
            for batch in _reordered(stream, seed).batches():
                answers = adapted(source.preprocessing(batch.images).to(device)).argmax(dim=1)
                right += int((answers.cpu().numpy() == batch.labels).sum())
                bar.update(len(batch.labels))
            found.append(Solution(seed, adapted.theta.mean(dim=0).cpu(), 100 * right / len(stream)))
    images, labels = _first_images(stream, judged_on)
    x = source.preprocessing(images).to(device)
    return Solutions(cell, source, adapted, tuple(found), x, torch.from_numpy(labels).to(device))


def _reordered(stream: Stream, seed: int) -> Stream:
    """The images of each segment in an order of the seed's own."""
    rng = np.random.default_rng(seed)
    ends = (*stream.order.starts[1:], len(stream))
    segments = [first + rng.permutation(end - first) for first, end in zip(stream.order.starts, ends, strict=True)]
    taken = np.concatenate(segments)
    return replace(
        stream, order=replace(stream.order, domain=stream.order.domain[taken], item=stream.order.item[taken])
    )


def _first_images(stream: Stream, count: int) -> tuple[list[Image], NDArray[np.int64]]:
    images: list[Image] = []
    labels: list[int] = []
    for batch in stream.batches():
        images += batch.images
        labels += batch.labels.tolist()
        if len(images) >= count:
            break
    return images[:count], np.array(labels[:count], np.int64)
