"""Sentences that class names are put into before the text encoder reads them."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from polytta.errors import InputError

TEMPLATES: dict[str, tuple[str, ...]] = {
    "photo": ("a photo of a {}",),
    # Those of Osowiechi et al., "WATT: Weight Average Test-Time Adaptation of CLIP", NeurIPS 2024.
    "watt8": (
        "a photo of a {}",
        "itap of a {}",
        "a bad photo of the {}.",
        "a origami {}.",
        "a photo of the large {}.",
        "a {} in a video game.",
        "art of the {}.",
        "a photo of the small {}.",
    ),
}


def resolve_templates(templates: str | Sequence[str]) -> tuple[str, ...]:
    """The sentences of a name, or those given, each with a place for the class."""
    if isinstance(templates, str):
        if templates not in TEMPLATES:
            raise InputError(f"templates: got {templates!r}; allowed are {sorted(TEMPLATES)}, or a list of sentences.")
        return TEMPLATES[templates]
    found = _listed(templates)
    wrong = [one for one in found if not isinstance(one, str) or one.count("{}") != 1]
    if wrong or not found:
        raise InputError(
            f"templates: got {(wrong[0] if wrong else templates)!r}; allowed are sentences with one {{}} in the place "
            "of the class name."
        )
    return found


def resolve_classes(classes: Sequence[str]) -> tuple[str, ...]:
    """The class names, two or more and all different."""
    found = _listed(classes)
    if len(found) < 2 or not all(isinstance(name, str) and name.strip() for name in found):
        raise InputError(f"classes: got {classes!r}; allowed are the names of two classes or more, in a list.")
    bare = [name.strip() for name in found]
    repeated = sorted({name for name in bare if bare.count(name) > 1})
    if repeated:
        raise InputError(f"classes: got {repeated[0]!r} more than once; allowed are different names.")
    return found


def _listed(given: object) -> tuple[Any, ...]:
    """What is in a list; nothing of a set, whose order, and so that of the answers, is another in every process."""
    ordered = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | Set)
    return tuple(given) if isinstance(given, Iterable) and ordered else ()
