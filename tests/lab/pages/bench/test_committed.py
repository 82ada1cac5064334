"""The results the documentation shows are those of the tables beside them, byte for byte."""

from pathlib import Path

import pytest

from polytta.lab.pages.bench.write import RESULTS, write_report

FOLDER = Path(__file__).parents[4] / "docs" / "results" / "paper"


@pytest.mark.skipif(not FOLDER.is_dir(), reason="no results are committed")
def test_results_regenerate(tmp_path: Path) -> None:
    write_report(FOLDER, tmp_path)
    assert (tmp_path / RESULTS).read_bytes() == (FOLDER / "results.md").read_bytes()
