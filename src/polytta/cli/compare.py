"""``polytta compare``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from polytta.errors import InputError
from polytta.lab.bench import compare, read_records
from polytta.lab.bench.comparison import comparison_text
from polytta.lab.bench.rows_compared import compare_rows, rows_text


@dataclass(frozen=True)
class Compare:
    """Say whether two results differ by more than noise.

    Two records or folders: every fact that differs, and their accuracies. One folder with --rows: two rows of it,
    paired over all cells they share: difference, 95 % interval and p.
    """

    a: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="A")]
    """A record (DIR/cells/KEY.json) or the folder of a benchmark."""
    b: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[B]")] = None
    """Another; the cells of two folders are paired where they agree in all but how they were run."""
    rows: Annotated[tuple[str, str] | None, tyro.conf.arg(metavar="ROW ROW")] = None
    """Two rows by the names in the tables: the first of A against the second of B, or of A where there is no B."""

    def run(self) -> None:
        """Prints the comparison."""
        first = read_records(self.a)
        if self.rows is not None:
            second = first if self.b is None else read_records(self.b)
            print(rows_text(self.rows, compare_rows(first, second, self.rows)))
        elif self.b is None:
            known = ", ".join(dict.fromkeys(record.cell.variant for record in first))
            raise InputError(f"B: got none; allowed are another record or folder, or --rows with two of {known}.")
        else:
            print(comparison_text(compare(first, read_records(self.b))))
