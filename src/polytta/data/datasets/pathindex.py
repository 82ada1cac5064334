"""A list of file paths that stays small: one run of bytes with offsets instead of a million strings."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable
from pathlib import Path


class PathIndex:
    """Paths relative to one folder, in a fixed order."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        """Take in the names one by one; a generator keeps the peak as low as the result."""
        self.folder = folder
        self._bytes = bytearray()
        self._ends = array("Q")
        for name in names:
            self._bytes += os.fsencode(name)
            self._ends.append(len(self._bytes))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> Path:
        if not 0 <= index < len(self._ends):
            raise IndexError(index)
        start = self._ends[index - 1] if index else 0
        return self.folder / os.fsdecode(bytes(self._bytes[start : self._ends[index]]))
