"""Which software a result was made with."""

import platform
from collections.abc import Iterable
from importlib import metadata


def versions(packages: Iterable[str] = ("polytta", "torch", "numpy", "pillow")) -> dict[str, str]:
    """Versions a result depends on."""
    return {"python": platform.python_version(), **{name: _version(name) for name in packages}}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
