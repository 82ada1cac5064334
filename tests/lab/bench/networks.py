"""Source models small enough to run a cell in no time, named ``tests.lab.bench.networks:tiny`` and so on."""

import os
import signal
from collections import Counter
from pathlib import Path

import torch
from tests.clip.tiny_clip import tiny_clip, tokenize
from torch import Tensor, nn

from polytta.clip import zero_shot
from polytta.models import Preprocessing, SourceModel

TINY = "tests.lab.bench.networks:tiny"
CLASSES = 10


class Tiny(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 4, 4), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, 16, 2, 2), nn.GroupNorm(2, 16), nn.ReLU()
        )
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x).mean(dim=(2, 3)))


ENOUGH = 60
"""Forward passes in one process after which a bad network fails: far more than planning needs."""

_passes: Counter[str] = Counter()


def _is_enough(network: nn.Module) -> bool:
    kind = type(network).__name__
    _passes[kind] += 1
    return _passes[kind] > ENOUGH


class Fragile(Tiny):
    """Fails in the middle of its first cell, and ever after."""

    def forward(self, x: Tensor) -> Tensor:
        if _is_enough(self):
            raise ZeroDivisionError("this network\nfails")
        return super().forward(x)


class Deadly(Tiny):
    """The same, but takes its process with it."""

    def forward(self, x: Tensor) -> Tensor:
        if _is_enough(self):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(x)


class Noted(Tiny):
    """Writes down which processes it runs in."""

    def forward(self, x: Tensor) -> Tensor:
        folder = Path(os.environ["POLYTTA_TEST_NOTES"])
        (folder / str(os.getpid())).touch()
        return super().forward(x)


def _source(kind: type[Tiny], shift: float = 0.5) -> SourceModel:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = kind()
        network.head.weight.data *= 20  # so that some predictions are confident
    return SourceModel("", network, Preprocessing((shift,) * 3, (0.25,) * 3, 32, 32), CLASSES, "")


def tiny() -> SourceModel:
    return _source(Tiny)


def shifted() -> SourceModel:
    """The same network under another normalisation."""
    return _source(Tiny, shift=0.4)


def fragile() -> SourceModel:
    return _source(Fragile)


def deadly() -> SourceModel:
    return _source(Deadly)


def noted() -> SourceModel:
    return _source(Noted)


def reading() -> SourceModel:
    """The toy CLIP as a zero-shot classifier."""
    names = ("airplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
    network = zero_shot(tiny_clip(), tokenize, names, ("a photo of a {}", "a bad picture of the {}."))
    return SourceModel("", network, Preprocessing((0.5,) * 3, (0.25,) * 3, 32, 32), CLASSES, "")
