"""Names that tell results apart."""

from collections.abc import Mapping, Sequence
from typing import Any


def distinct_names(names: Sequence[str], settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names; where several are equal, each with the settings in which they differ."""
    distinct = []
    for name, own in zip(names, settings, strict=True):
        namesakes = [other for same, other in zip(names, settings, strict=True) if same == name]
        apart = [
            f"{key}={shortened(value)}"
            for key, value in own.items()
            if any(other.get(key) != value for other in namesakes)
        ]
        distinct.append(f"{name} ({', '.join(apart)})" if apart else name)
    return distinct


def shortened(value: Any, most: int = 80) -> str:
    """A value as text of a length that fits into a line."""
    text = str(value)
    return text if len(text) <= most else f"{text[:most]}..."
