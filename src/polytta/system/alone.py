"""One process at a time at a folder, without a trace in it; the lock of a process that dies is free again."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on every system; there two writers are on their own
    fcntl = None  # type: ignore[assignment]


@contextmanager
def alone_at(folder: Path, waits: Callable[[], object]) -> Iterator[None]:
    """While inside, no other process of this machine is; ``waits`` is called once where one has to be waited for."""
    if fcntl is None:
        yield
        return
    name = hashlib.sha256(str(folder.expanduser().resolve()).encode()).hexdigest()[:32]
    place = Path(tempfile.gettempdir()) / f"polytta-locks-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    with (place / name).open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waits()
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
