"""Arrays kept in files that are only trusted as they were written: a digest lies beside each."""

import hashlib
import os
import secrets
import stat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytta.errors import DiskError
from polytta.system.files import write_whole

_SEEN: dict[Path, tuple[int, int]] = {}
"""Files that this process has found whole, with their time and size then."""


def is_whole(file: Path) -> bool:
    """Whether a file is there and what was written; it is read once per process, and again when it has changed."""
    try:
        state = file.stat()
        # A pipe waits for ever, and a device never ends.
        if not (stat.S_ISREG(state.st_mode) and _digest_file(file).is_file()):
            return False
        marks = (state.st_mtime_ns, state.st_size)
        if _SEEN.get(file) == marks:
            return True
        whole = _digest_file(file).read_text("ascii").strip() == _digest(file)
    except (OSError, UnicodeDecodeError):
        return False
    if whole:
        _SEEN[file] = marks
    return whole


def write(file: Path, array: NDArray[Any]) -> None:
    """Keeps an array; whoever is interrupted, or writes the same at the same time, leaves no half of one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("xb") as stream:
            np.save(stream, array)
        digest = _digest(beside)
        if file.is_dir():
            raise DiskError(f"cache: got {file}, which is a folder; allowed is a plain file, or nothing.")
        beside.replace(file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    write_whole(_digest_file(file), f"{digest}\n".encode())


def _digest_file(file: Path) -> Path:
    return file.with_name(file.name + ".sha256")


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while part := stream.read(2**20):
            digest.update(part)
    return digest.hexdigest()
