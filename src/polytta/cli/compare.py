"""``polytta compare``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from polytta.lab.bench import compare, read_records
from polytta.lab.bench.comparison import comparison_text


@dataclass(frozen=True)
class Compare:
    """Name every fact that differs between two results, and say whether their accuracies differ by more than noise."""

    a: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="A")]
    """A record (DIR/cells/KEY.json) or the folder of a benchmark."""
    b: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="B")]
    """Another; the cells of two folders are paired where they agree in all but how they were run."""

    def run(self) -> None:
        """Prints the comparison."""
        print(comparison_text(compare(read_records(self.a), read_records(self.b))))
