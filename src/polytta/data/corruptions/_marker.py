"""``polytta-generated.json`` at the root of generated data: that they were generated here, how, and what is whole.

A run with other settings into the same folder is refused, and two runs into it take turns.
"""

import json
import platform
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from polytta.data.datasets.base import GENERATED_MARKER
from polytta.errors import DataError, InputError, Stopped
from polytta.system.alone import alone_at
from polytta.system.files import write_whole
from polytta.system.json_text import parsed


@contextmanager
def held_to_settings(
    root: Path,
    settings: dict[str, Any],
    types: Iterable[str],
    severities: Iterable[int],
    classes: Sequence[str] | None,
) -> Iterator[None]:
    """Hold the folder to its settings and to this process, and note at the end what is complete in it."""
    with alone_at(root, lambda: warnings.warn(f"destination: waiting for another process at {root}.", stacklevel=6)):
        try:
            path = root / GENERATED_MARKER
            complete = _complete_before(root, path, settings)
            _write(path, settings, complete, classes)
            yield
            for name in types:
                complete[name] = complete.get(name, set()) | set(severities)
            _write(path, settings, complete, classes)
        except KeyboardInterrupt:
            raise Stopped(f"what is finished stays in {root}, and the same command goes on from there") from None
        finally:
            # The folder is this process's alone, so whatever is unfinished here is nobody's.
            for unfinished in root.rglob(".*.tmp"):
                unfinished.unlink(missing_ok=True)


def _complete_before(root: Path, path: Path, settings: dict[str, Any]) -> dict[str, set[int]]:
    if not path.exists():
        if root.exists() and any(root.iterdir()):
            raise InputError(
                f"destination: got {root} with other files; allowed is an empty folder, or one with {path.name}."
            )
        return {}
    try:
        stored = parsed(path.read_text("utf-8"))
        before = stored["settings"]
        complete = {str(name): set(map(int, done)) for name, done in stored["complete"].items()}
        differing = [key for key, value in settings.items() if before.get(key) != value]
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: got no record of generated data; allowed is what `polytta corrupt` wrote.") from error
    if differing:
        key = differing[0]
        raise InputError(
            f"destination: got {root}, written with {key}={before.get(key)!r}, for {key}={settings[key]!r}; allowed "
            "are the same settings or another folder."
        )
    return complete


def _write(path: Path, settings: dict[str, Any], complete: dict[str, set[int]], classes: Sequence[str] | None) -> None:
    record = {
        "label": "generated",
        "note": "Made by polytta from clean images; not the published CIFAR-C or ImageNet-C files.",
        "settings": settings,
        "classes": None if classes is None else list(classes),
        "complete": {name: sorted(done) for name, done in sorted(complete.items())},
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("numpy", "pillow", "torch")},
            "polytta": _own_version(),
        },
    }
    write_whole(path, (json.dumps(record, indent=2) + "\n").encode())


def _own_version() -> str:
    try:
        return metadata.version("polytta")
    except metadata.PackageNotFoundError:
        return "not installed"
