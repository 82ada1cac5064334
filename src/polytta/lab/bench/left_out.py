"""Images of one's own that cannot be read: found when one of them ends a cell, then passed over and told of.

Published datasets are not looked after here: without some of its images one is no longer what its name says.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from polytta.data.datasets import FileImages
from polytta.data.datasets.decode import UnreadableImageError, read_image
from polytta.lab.bench.cell import Cell
from polytta.lab.bench.corrupted_images import CorruptedImages, CutImages
from polytta.lab.bench.data import CORRUPTED, PLAIN, open_cell_stream
from polytta.lab.bench.on_machine import PRELOAD
from polytta.system.files import write_whole
from polytta.system.json_text import parsed
from polytta.system.workers import Worker, run_tasks, usable_cores

_FILES_PER_TASK = 64


@dataclass(frozen=True)
class Unreadable:
    """A file and what is wrong with it; a file that is another by now may be well."""

    path: str
    size: int
    modified: float
    sentence: str

    @property
    def is_as_it_was(self) -> bool:
        """Whether the same file is still there."""
        try:
            found = Path(self.path).stat()
        except OSError:
            return False
        return (found.st_size, found.st_mtime) == (self.size, self.modified)


class LeftOut:
    """What a benchmark passes over, remembered in its folder so that it is looked for once."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "left-out.json"
        self._well: set[str] = set()
        self._known = {one.path: one for one in _read(self._file) if one.is_as_it_was}

    def applied(self, cell: Cell) -> Cell:
        """The cell without them."""
        return replace(cell, left_out=tuple(one.path for one in self._of(cell)))

    def sentences(self, cells: Iterable[Cell]) -> list[str]:
        """What is wrong with those that these cells would have met."""
        return list(dict.fromkeys(one.sentence for cell in cells for one in self._of(cell)))

    def look(self, cell: Cell, *, progress: bool) -> bool:
        """Reads all images of a cell's dataset; whether there are more that cannot be read than were known."""
        paths = [path for path in _files(cell) if path not in self._known and path not in self._well]
        tasks = [paths[start : start + _FILES_PER_TASK] for start in range(0, len(paths), _FILES_PER_TASK)]
        found: list[Unreadable] = []
        with tqdm(total=len(paths), desc="looking for broken images", leave=False, disable=not progress) as bar:
            for done in run_tasks(_broken_among, tasks, usable_cores(), preload=PRELOAD):
                found += done.result()
                bar.update(len(done.task))
        self._known.update({one.path: one for one in found})
        self._well.update(path for path in paths if path not in self._known)
        if found:
            plain = [vars(one) for one in self._known.values()]
            write_whole(self._file, (json.dumps(plain, indent=1) + "\n").encode())
        return bool(found)

    def _of(self, cell: Cell) -> list[Unreadable]:
        if cell.data_path is None or cell.dataset in (*CORRUPTED, *PLAIN):
            return []
        folder = Path(cell.data_path)
        return sorted(
            (one for one in self._known.values() if folder in Path(one.path).parents), key=lambda one: one.path
        )


def _files(cell: Cell) -> list[str]:
    """The files of a cell's images, where these are somebody's own and in files."""
    if cell.data_path is None or cell.dataset in (*CORRUPTED, *PLAIN):
        return []
    found: list[str] = []
    for domain in open_cell_stream(cell).datasets:
        clean = domain.clean if isinstance(domain, CorruptedImages) else domain
        images = clean.files if isinstance(clean, CutImages) else clean
        if isinstance(images, FileImages):
            found += [str(images.paths[number]) for number in range(len(images))]
    return list(dict.fromkeys(found))


def _broken_among(paths: list[str], worker: Worker) -> list[Unreadable]:
    broken = []
    for path in paths:
        try:
            read_image(Path(path))
        except UnreadableImageError as error:
            try:
                stored = Path(path).stat()
            except OSError:
                continue  # it is gone, and the next look at the folder will not find it
            broken.append(Unreadable(path, stored.st_size, stored.st_mtime, str(error)))
    return broken


def _read(file: Path) -> list[Unreadable]:
    try:
        stored: list[dict[str, Any]] = parsed(file.read_text("utf-8"))
        return [Unreadable(**one) for one in stored]
    except (OSError, ValueError, TypeError):
        return []
