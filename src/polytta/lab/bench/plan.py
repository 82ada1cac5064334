"""Everything that decides a cell's numbers, found out before it is run: so that a finished cell is known by its key."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

import polytta
from polytta import models
from polytta.aggregate import evidence
from polytta.data.datasets import imagenet_r_mask
from polytta.errors import InputError
from polytta.lab.bench.cell import Cell
from polytta.lab.bench.data import data_facts, open_cell_stream
from polytta.lab.bench.record import canonical_json, key_of
from polytta.lab.bench.variants import adapt_arguments
from polytta.models import SourceModel
from polytta.stream import Stream

PROTOCOL = (
    "bench 2: one pass over the stream; each batch is predicted before it is learnt from; "
    "a fresh source model for each cell; the same seed orders the stream and drives the adaptation"
)
# Where and how a cell runs does not change what it computes.
_NOT_PINNED = ("engine", "populations", "particles_at_once")
_RESOLVED: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True)
class Plan:
    """A cell with its pins and the key they give it."""

    cell: Cell
    pins: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Name of the record to be."""
        return key_of(self.cell, self.pins)

    @property
    def images(self) -> int:
        """Length of the stream."""
        return int(self.pins["stream"]["images"])

    @property
    def learning_rates(self) -> tuple[float, ...]:
        """One per particle."""
        return tuple(self.pins["settings"]["learning_rates"])


def plan_cell(cell: Cell) -> Plan:
    """The plan of a cell; opens no image file."""
    stream = open_cell_stream(cell)
    source = source_model(cell)
    if len(stream.datasets[0].classes) > source.num_classes:
        raise InputError(
            f"datasets: {cell.dataset} has {len(stream.datasets[0].classes)} classes; "
            f"{cell.model} tells {source.num_classes} apart."
        )
    if stream.spec.reset == "segment" and len(stream.order.starts) > 1:
        raise InputError(
            f"scenarios: {cell.scenario} over {len(stream.order.starts)} corruptions asks for a fresh model at each; "
            f"allowed is a cell for each corruption."
        )
    return Plan(
        cell,
        {
            "model": source.facts(),
            "stream": _finite({**stream.facts(), "sha256": stream.sha256}),
            "data": data_facts(stream),
            "settings": {**_resolved_settings(cell, source), "seed": cell.seed, "precision": cell.precision},
            "protocol": PROTOCOL,
            "data_origin": _origin(stream),
            **({"evidence": evidence.facts()} if cell.aggregate == "evidence" else {}),
        },
    )


def source_model(cell: Cell, device: str = "cpu") -> SourceModel:
    """The cell's model, kept for the next cell that has the same."""
    # ImageNet-R has 200 of ImageNet's classes; the others are left out before anything is predicted.
    return _source_model(cell.model, cell.weights_path, cell.normalisation, cell.dataset == "imagenet-r", device)


@lru_cache(4)
def _source_model(name: str, weights: str | None, normalisation: str, only_r: bool, device: str) -> SourceModel:
    source = models.create(name, weights=weights, normalisation=normalisation)
    if only_r and source.num_classes == 1000:
        kept = imagenet_r_mask()
        source = replace(source, module=KeptClasses(source.module, kept).eval(), num_classes=len(kept))
    return replace(source, module=source.module.to(device))


class KeptClasses(nn.Module):
    """A classifier restricted to some of its classes."""

    kept: Tensor

    def __init__(self, network: nn.Module, kept: tuple[int, ...]) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("kept", torch.tensor(kept))

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the classes kept."""
        return self.network(x)[:, self.kept]


def _resolved_settings(cell: Cell, source: SourceModel) -> dict[str, Any]:
    """``Config.to_dict()`` as it is after the first batch, which decides the learning rates; the seed aside."""
    arguments = cell.to_dict()
    for name in ("corruption", "severity", "images", "seed", "variant"):
        del arguments[name]
    text = canonical_json([arguments, source.weights_sha256])
    if text not in _RESOLVED:
        # In full precision: the others exist on a CUDA device only, and change none of the settings.
        arguments = {**adapt_arguments(cell), "seed": 0, "precision": "fp32"}
        adapted = polytta.adapt(source.module, **arguments, num_classes=source.num_classes)
        adapted(torch.zeros(1, 3, source.preprocessing.size, source.preprocessing.size))
        settings = adapted.config.to_dict()
        _RESOLVED[text] = {name: value for name, value in settings.items() if name not in _NOT_PINNED}
    return _RESOLVED[text]


def _origin(stream: Stream) -> str:
    return "generated" if any(domain.origin == "generated" for domain in stream.datasets) else "official"


def _finite(value: Any) -> Any:
    """Infinite odds in a scenario, which JSON does not know, in words."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
