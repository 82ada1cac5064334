"""Writes all a report consists of."""

import json
from pathlib import Path

from polytta.bench.record import write_whole
from polytta.report.bench.page import bench_page
from polytta.report.bench.read import FACTS, read_folder
from polytta.report.bench.results import results_markdown, tables_latex
from polytta.report.bench.summary import panels

PAGE, RESULTS, LATEX = "report.html", "results.md", "tables.tex"


def write_report(folder: Path, out: Path | None = None) -> list[Path]:
    """Reads a benchmark's folder and writes its report, by default beside the records; returns what was written."""
    found = read_folder(folder)
    laid_out = panels(found.entries)
    where = out or folder
    written = {
        where / PAGE: bench_page(laid_out, found.records),
        where / RESULTS: results_markdown(laid_out, found.facts),
        where / LATEX: tables_latex(laid_out),
        # With the tables, all that results.md needs where the records themselves are not kept.
        where / FACTS: json.dumps(found.facts, indent=1, ensure_ascii=False) + "\n",
    }
    for path, text in written.items():
        write_whole(path, text.encode())
    return list(written)
