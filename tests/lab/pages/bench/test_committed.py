"""The results the documentation shows are those of the tables beside them, byte for byte."""

from pathlib import Path

import pytest

from polytta.lab.pages.bench.write import RESULTS, write_report

DOCS = Path(__file__).parents[4] / "docs"


@pytest.mark.skipif(not (DOCS / "results").is_dir(), reason="no results are committed")
def test_results_regenerate(tmp_path: Path) -> None:
    write_report(DOCS / "results", tmp_path)
    assert (tmp_path / RESULTS).read_bytes() == (DOCS / "results.md").read_bytes()
