"""The ``polytta`` program: one file per command. Nothing else in the package knows that it exists."""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

STOPPED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code."""
    is_begun = "polytta.cli.program" in sys.modules
    if is_begun or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        from polytta.cli.program import main as run

        return run(arguments)
    # All the rest takes seconds to import. As an exception, an interrupt would come out of the middle of a compiled
    # module, as an error of any other kind or not at all.
    signal.signal(signal.SIGINT, _end)
    try:
        from polytta.cli.program import main as run
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run(arguments)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"polytta: stopped.\n")
    os._exit(STOPPED)
