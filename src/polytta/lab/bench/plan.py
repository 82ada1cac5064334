"""Everything that decides a cell's numbers, found out before it is run: so that a finished cell is known by its key."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from polytta import models
from polytta.data.datasets import imagenet_r_mask
from polytta.errors import ConfigError, InputError
from polytta.lab.bench.cell import Cell
from polytta.lab.bench.data import data_facts, open_cell_stream
from polytta.lab.bench.record import key_of
from polytta.models import SourceModel
from polytta.network.copies import unwrap
from polytta.particles import FoldedEngine
from polytta.settings import Config, resolve
from polytta.settings.plain import plugin_sources, to_plain
from polytta.stream import Stream

PROTOCOL = (
    "bench 3: one pass over the stream; each batch is predicted before it is learnt from; "
    "a fresh source model for each cell; the same seed orders the stream and drives the adaptation"
)
# Where and how a cell runs does not change what it computes.
_NOT_PINNED = ("engine", "populations", "particles_at_once")
# Decided settings have them in one form alone, and records from before they came keep their keys.
_SAID_BY_OTHERS = ("axes", "size")
_NEWER = {"steps": 1, "episodic": False, "prompts": "mean", "guard": {"name": "off"}}
# What stands for a name in some datasets: a label, or an id of WordNet.
_NUMBER = re.compile(r"\d+|n\d{8}")
_FAMILIES: dict[tuple[str, str, tuple[str, ...]], str] = {}


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
    def particles(self) -> int:
        """K."""
        return int(self.pins["settings"]["particles"])

    @property
    def rates(self) -> tuple[str, tuple[float, ...]]:
        """ "lr" or "pace", and one of these per particle."""
        settings = self.pins["settings"]
        name = "pace" if "pace" in settings else "lr"
        return name, tuple(settings[name])


def plan_cell(cell: Cell) -> Plan:
    """The plan of a cell; opens no image file."""
    stream = open_cell_stream(cell)
    source = source_model(cell)
    check_classes(cell, stream, source)
    if stream.spec.reset == "segment" and len(stream.order.starts) > 1:
        raise InputError(
            f"scenarios: got {cell.scenario} over {len(stream.order.starts)} corruptions, with a fresh model for each; "
            "allowed is a cell for each corruption."
        )
    config = _config(cell, source)
    pins = {
        "model": source.facts(),
        "stream": _finite({**stream.facts(), "sha256": stream.sha256}),
        "data": data_facts(stream),
        "settings": _decided_settings(cell, config, source),
        "protocol": PROTOCOL,
        "data_origin": _origin(stream),
    }
    # Constants and files that decide answers and that no setting names.
    also = {"aggregate": config.aggregate.facts(), "plugins": plugin_sources(config.settings)}
    return Plan(cell, {**pins, **{name: facts for name, facts in also.items() if facts}})


def check_classes(cell: Cell, stream: Stream, source: SourceModel, argument: str = "datasets") -> None:
    """Refuses labels that the model does not have, and folders whose sorted places cannot be the model's labels."""
    first = stream.datasets[0]
    classes = first.classes
    if len(classes) > source.num_classes:
        raise InputError(
            f"{argument}: got {cell.dataset}, which has {len(classes)} classes; "
            f"allowed are the {source.num_classes} that {cell.model} tells apart."
        )
    named = any(not name.isdecimal() for name in classes)
    if named and len(classes) < source.num_classes:
        names = ", ".join((*classes[:3], *(["..."] if len(classes) > 3 else [])))
        raise InputError(
            f"{argument}: got {cell.dataset}, which has {len(classes)} classes ({names}), for the "
            f"{source.num_classes} of {cell.model}; allowed is a folder for each, sorted as its labels are, empty "
            "where there are no images."
        )


def source_model(cell: Cell, device: str = "cpu") -> SourceModel:
    """The cell's model, kept for the next cell that has the same."""
    # ImageNet-R has 200 of ImageNet's classes; the others are left out before anything is predicted.
    only_r = cell.dataset == "imagenet-r"
    return _source_model(cell.model, cell.weights_path, cell.normalisation, only_r, _class_names(cell), device)


@lru_cache(4)
def _source_model(
    name: str, weights: str | None, normalisation: str, only_r: bool, classes: tuple[str, ...] | None, device: str
) -> SourceModel:
    source = models.create(name, weights=weights, classes=classes, normalisation=normalisation)
    if only_r and source.num_classes == 1000:
        kept = imagenet_r_mask()
        source = replace(source, module=KeptClasses(source.module, kept).eval(), num_classes=len(kept))
    return replace(source, module=source.module.to(device))


def _class_names(cell: Cell) -> tuple[str, ...] | None:
    """The dataset's, for a model that reads them."""
    if not models.reads_class_names(cell.model):
        return None
    names = open_cell_stream(cell).datasets[0].classes
    if all(_NUMBER.fullmatch(name) for name in names):
        raise InputError(
            f"datasets: got {cell.dataset}, whose classes have no names; allowed for {cell.model} are those with names."
        )
    return tuple(name.replace("_", " ") for name in names)


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


def _config(cell: Cell, source: SourceModel) -> Config:
    try:
        return resolve(cell.to_settings(num_classes=source.num_classes), unwrap(source.module))
    except ConfigError as error:
        raise ConfigError(f"variant {cell.variant!r}: {error}") from error


def _decided_settings(cell: Cell, config: Config, source: SourceModel) -> dict[str, Any]:
    """All options as plain values, the learning rates as the first batch will find them."""
    # Asked in any case: a model that cannot be adapted is better found now than after an hour.
    family = _family(cell, config.layers, source)
    rates = config.rates or config.reference_rates(family, cell.batch_size)
    plain = to_plain(config.settings if rates.relative else replace(config.settings, lr=rates.values))
    if not rates.relative:
        del plain["pace"]
    told = {name: value for name, value in plain.items() if name not in (*_NOT_PINNED, *_SAID_BY_OTHERS)}
    return {name: value for name, value in told.items() if name not in _NEWER or value != _NEWER[name]}


def _family(cell: Cell, layers: tuple[str, ...], source: SourceModel) -> str:
    """The family of models that the reference rule for learning rates asks for; a pass through the model tells."""
    known = (cell.model, source.weights_sha256, layers)
    if known not in _FAMILIES:
        sample = torch.zeros(1, 3, source.preprocessing.size, source.preprocessing.size)
        _FAMILIES[known] = FoldedEngine.examine(unwrap(source.module), sample, layers).family(layers)
    return _FAMILIES[known]


def _origin(stream: Stream) -> str:
    origins = {domain.origin for domain in stream.datasets}
    return next((origin for origin in ("generated", "own") if origin in origins), "official")


def _finite(value: Any) -> Any:
    """Infinite odds in a scenario, which JSON does not know, in words."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
