"""Files that are never half written."""

import os
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from polytta.errors import ConfigError, DiskError

_LEFT_BEHIND_AFTER = 600.0
"""Seconds after which what a process left behind that is gone is swept up."""


def as_path(argument: str, value: object) -> Path:
    """A path that a user gave."""
    given = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(given, str) or not given or "\0" in given or not _can_be_named(given):
        raise ConfigError(f"{argument}: got {value!r}; allowed is the path of a file.")
    return Path(given)


def _can_be_named(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def open_to_append(path: Path) -> IO[str]:
    """A text file at its end; OSError for what is no plain file, since a pipe that nobody reads would wait for ever."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("it is no plain file")
    return os.fdopen(handle, "a", encoding="utf-8")


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that is, at any moment and after a power cut, the old one or the new one.

    What a link leads to is written, the link stays; a file keeps who may read it.
    """
    try:
        _write(Path(os.path.realpath(path)), content)
    except DiskError:
        raise
    except OSError as error:
        raise DiskError(
            f"path: got {str(path)!r}, which cannot be written ({error.strerror or error}); allowed is a place "
            "with room."
        ) from error


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.stat() if path.exists() else None
    if before is not None and not stat.S_ISREG(before.st_mode):
        raise DiskError(f"path: got {str(path)!r}, which is no plain file; allowed is a file, or a name for a new one.")
    _sweep(path)
    # Two processes or threads may write the same file at once.
    beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("xb") as stream:
            if before is not None:
                os.chmod(beside, stat.S_IMODE(before.st_mode))
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _settle(path.parent)


def _settle(folder: Path) -> None:
    """Makes the new name last as well; not every system lets a folder be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sweep(path: Path) -> None:
    """Removes what processes of this machine left beside a file when they were killed, some time ago."""
    for left in path.parent.glob(f".{_literal(path.name)}.*.*.tmp"):
        pid = left.name.split(".")[-3]
        with suppress(OSError):
            old = time.time() - left.stat().st_mtime > _LEFT_BEHIND_AFTER
            if pid.isdigit() and old and not _lives(int(pid)):
                left.unlink()


def _literal(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
