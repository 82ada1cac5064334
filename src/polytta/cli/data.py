"""``polytta data status``."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from polytta.data.datasets import status
from polytta.data.datasets.roots import ENVIRONMENT
from polytta.errors import InputError


@dataclass(frozen=True)
class Data:
    """Say which datasets are present and where to get the others; nothing is ever downloaded."""

    action: tyro.conf.Positional[Literal["status"]]
    """What to do."""
    root: Path | None = None
    """Folder that holds the datasets; without it, what POLYTTA_DATA names, or the current folder."""

    def run(self) -> None:
        """Prints one line per dataset."""
        if self.root is not None and not self.root.is_dir():
            raise InputError(f"--root: got {self.root}, which is no folder; allowed is one that holds datasets.")
        for dataset in status(self.root or os.environ.get(ENVIRONMENT) or Path.cwd()):
            state = f"present ({dataset.origin})" if dataset.present else "missing"
            where = "" if dataset.present else f"; get it from {dataset.source}"
            print(f"{dataset.name:<14}{state:<21}{dataset.path}{where}")
