"""A lock that objects may hold which are copied and sent to other processes: each copy has its own."""

import threading
from typing import Any


class Turn:
    """``with turn:`` is one at a time; whoever has it may take it again."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Turn":
        return Turn()

    def __reduce__(self) -> tuple[type["Turn"], tuple[()]]:
        return Turn, ()
