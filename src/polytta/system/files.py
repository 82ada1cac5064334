"""Files that are never half written."""

import os
import secrets
from pathlib import Path

from polytta.errors import ConfigError


def as_path(argument: str, value: object) -> Path:
    """A path that a user gave."""
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes) or "\0" in os.fspath(value):
        raise ConfigError(f"{argument}: got {value!r}; allowed is the path of a file.")
    return Path(value)


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that is, at any moment and after a power cut, the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Two processes or threads may write the same file at once.
    beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
