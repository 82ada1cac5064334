"""Writes all a report consists of."""

import json
import os
from pathlib import Path

from polytta.errors import InputError, PolyttaError
from polytta.lab.bench.store import places_of
from polytta.lab.bench.table import TABLE, TIMES, tables_of
from polytta.lab.pages.bench.page import bench_page
from polytta.lab.pages.bench.panels import panels
from polytta.lab.pages.bench.read import FACTS, read_folder
from polytta.lab.pages.bench.results import results_markdown, tables_latex
from polytta.system.files import write_whole

PAGE, RESULTS, LATEX = "report.html", "results.md", "tables.tex"


def write_report(folder: Path, out: Path | None = None) -> list[Path]:
    """Reads a benchmark's folder and writes its report; returns what was written.

    Args:
        folder: what ``polytta bench`` wrote.
        out: where the report goes, by default beside the records. Elsewhere the tables go with it, so that the report
            can be made again without the records.
    """
    where = out or folder
    cells = os.path.relpath(folder / "cells", where)
    try:
        found = read_folder(folder)
        laid_out = panels(found.entries)
        written = {
            PAGE: bench_page(laid_out, found.records, cells, places_of(folder)).encode(),
            RESULTS: results_markdown(laid_out, found.facts).encode(),
            LATEX: tables_latex(laid_out).encode(),
            FACTS: (json.dumps(found.facts, indent=1, ensure_ascii=False) + "\n").encode(),
        }
    except PolyttaError:
        raise
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
        # Records are whole by their checksum, but whoever writes one by hand can put words where numbers belong.
        raise InputError(
            f"DIR: got records in {folder} that hold something other than `polytta bench` writes ({error}); allowed "
            "are those it wrote."
        ) from error
    if where.resolve() != folder.resolve():
        # A table beside the records may be older than they are.
        kept = {name: (folder / name).read_bytes() for name in (TABLE, TIMES) if (folder / name).is_file()}
        written.update(tables_of(list(found.records.values())) if found.records else kept)
    for name, content in written.items():
        write_whole(where / name, content)
    return [where / name for name in written]
