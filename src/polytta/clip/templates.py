"""Sentences that class names are put into before the text encoder reads them."""

from collections.abc import Sequence

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
    found = tuple(templates)
    wrong = [one for one in found if not isinstance(one, str) or one.count("{}") != 1]
    if wrong or not found:
        raise InputError(
            f"templates: got {wrong[0] if wrong else list(found)!r}; allowed are sentences with one {{}} in the place "
            "of the class name."
        )
    return found


def resolve_classes(classes: Sequence[str]) -> tuple[str, ...]:
    """The class names, two or more and all different."""
    found = () if isinstance(classes, str) else tuple(classes)
    repeated = sorted({name for name in found if found.count(name) > 1})
    if len(found) < 2 or not all(isinstance(name, str) and name.strip() for name in found):
        raise InputError(f"classes: got {classes!r}; allowed are the names of two classes or more.")
    if repeated:
        raise InputError(f"classes: got {repeated[0]!r} more than once; allowed are different names.")
    return found
