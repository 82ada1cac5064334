"""JSON from files that may say anything."""

import json
from typing import Any

_DEEPEST = 100
"""Levels: ours have fewer than ten, and whoever goes through more by recursion comes to an end."""


def parsed(text: str | bytes) -> Any:
    """What a text says; ValueError where it is no JSON, or nested too deeply."""
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    level, depth = [found], 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [one for values in inner for one in values]
    return found
