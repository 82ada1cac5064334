"""Files that are never half written."""

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that is, at any moment and after a power cut, the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The process is part of the name: two of them may write the same file at once.
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with beside.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(path)
