"""The facts that pin a set of records, each said once."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from polytta.lab.bench.record import Record

# Of the stream, or decided: all that is excluded is not among the targets.
_SAID_ELSEWHERE = ("seed", "batch_size", "num_classes", "exclude")


def pinned_facts(records: Iterable[Record]) -> list[str]:
    """One sentence per model, dataset and way to adapt, sorted; nothing that differs between two runs of a cell."""
    facts: dict[str, set[str]] = {
        "models": set(),
        "data": set(),
        "streams": set(),
        "protocols": set(),
        "settings": set(),
    }
    streams: dict[str, set[str]] = {}
    for record in records:
        pins = record.pins
        facts["models"].add(_model_fact(pins["model"]))
        facts["data"].add(f"Data {record.cell.dataset}: {pins.get('data_origin', 'of unknown origin')}")
        streams.setdefault(str(pins["stream"]["scenario"]), set()).add(str(pins["stream"]["sha256"]))
        if pins.get("protocol"):
            facts["protocols"].add(f"Protocol: {pins['protocol']}")
        facts["settings"].add(_settings_fact(record))
    facts["streams"] = {_streams_fact(scenario, hashes) for scenario, hashes in streams.items()}
    return [fact for part in facts.values() for fact in sorted(part)]


def environments(records: Iterable[Record]) -> dict[str, str]:
    """Where and with what the records were made: value(s) by name."""
    found: dict[str, set[str]] = {}
    for record in records:
        for name, value in record.environment.items():
            found.setdefault(name, set()).add(str(value))
    return {name: ", ".join(sorted(values)) for name, values in found.items()}


def _model_fact(model: Mapping[str, Any]) -> str:
    preprocessing = ", ".join(f"{name} {value}" for name, value in model.get("preprocessing", {}).items())
    return f"Model {model['id']}: weights SHA-256 {model['weights_sha256']}; images {preprocessing}"


def _streams_fact(scenario: str, hashes: set[str]) -> str:
    joined = hashlib.sha256("\n".join(sorted(hashes)).encode()).hexdigest()
    return f"Streams {scenario}: {len(hashes)}; SHA-256 over their sorted SHA-256, a line each: {joined}"


def _settings_fact(record: Record) -> str:
    settings = {name: value for name, value in record.pins["settings"].items() if name not in _SAID_ELSEWHERE}
    shown = {name: _shown(value) for name, value in settings.items()}
    shown["optimizer"] = ", ".join(sorted({_shown(one) for one in settings["optimizer"]}))
    rates = "pace" if settings.get("pace") else "lr"
    shown[rates] = ", ".join(f"{rate:.4g}" for rate in settings[rates])
    shown["targets"] = f"{len(settings['targets'])} layers"
    where = f"{record.cell.variant} on {record.cell.model}, {record.cell.scenario}"
    return f"Row {where}: " + "; ".join(f"{name} {value}" for name, value in shown.items())


def _shown(part: Any) -> str:
    if not isinstance(part, Mapping) or "name" not in part:
        return str(part)
    inside = ", ".join(f"{key}={value}" for key, value in part.items() if key != "name")
    return f"{part['name']}({inside})" if inside else str(part["name"])
