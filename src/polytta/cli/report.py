"""``polytta report``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from polytta.lab.pages.bench.write import write_report


@dataclass(frozen=True)
class Report:
    """Write a benchmark's report: one HTML page, Markdown and LaTeX tables.

    Needs the records, or table.csv with times.csv and facts.json where only these were kept; the page then has tables
    and costs but no diagrams.
    """

    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")]
    """Folder that polytta bench wrote."""
    out: Path | None = None
    """Folder for the report and the tables it can be made from again; by default the same."""

    def run(self) -> None:
        """Writes the report and says where."""
        for path in write_report(self.folder, self.out):
            print(path.resolve())
