"""The report on records that really ran."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.lab.pages.bench.records import ROWS, write_records
from tests.lab.pages.browser import needs_chromium, probe, screenshot

from polytta.errors import InputError
from polytta.lab.bench.store import Store
from polytta.lab.pages.bench.write import LATEX, PAGE, RESULTS, write_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bench")
    write_records(made)
    write_records(made, rows=("source", "naive"), scenario="mixed", seeds=(0,), model="bundled/cifar10_vit_ln")
    Store(made).write_tables()
    write_report(made)
    return made


def test_results_are_the_same_bytes_from_the_same_records(folder: Path) -> None:
    before = {name: (folder / name).read_bytes() for name in (RESULTS, LATEX, PAGE)}
    write_report(folder)
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_tables_alone_give_the_same_results(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    write_report(folder, kept)
    links = re.findall(r'href="([^"#]*json)"', (kept / PAGE).read_text())
    assert links
    assert all((kept / link).is_file() for link in links)
    (kept / RESULTS).unlink()
    (kept / LATEX).unlink()
    write_report(kept)
    for name in (RESULTS, LATEX):
        assert (kept / name).read_bytes() == (folder / name).read_bytes()
    assert "<svg" in (kept / PAGE).read_text()  # costs need no records


def test_tables_go_with_the_records_the_report_is_of(tmp_path: Path) -> None:
    write_records(tmp_path / "bench", rows=("source",), seeds=(0,))
    Store(tmp_path / "bench").write_tables()
    write_records(tmp_path / "bench", rows=("source",), seeds=(1,))
    write_report(tmp_path / "bench", tmp_path / "kept")
    before = (tmp_path / "kept" / RESULTS).read_bytes()
    write_report(tmp_path / "kept")
    assert (tmp_path / "kept" / RESULTS).read_bytes() == before


def test_results_say_what_was_measured(folder: Path) -> None:
    text = (folder / RESULTS).read_text()
    records = [json.loads(path.read_text()) for path in (folder / "cells").iterdir()]
    own = [
        r["results"]["accuracy"]
        for r in records
        if r["cell"]["variant"] == "grad" and r["cell"]["corruption"] == "frost"
    ]
    grad = re.search(r"^\| grad \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", text, re.MULTILINE)
    assert grad is not None
    assert float(grad[2].strip(" *").split(" ± ")[0]) == pytest.approx(np.mean(own), abs=0.05)
    assert float(grad[2].strip(" *").split(" ± ")[1]) == pytest.approx(np.std(own, ddof=1), abs=0.05)
    for fact in (records[0]["pins"]["model"]["weights_sha256"], "generated", "plpd_threshold=0.2"):
        assert fact in text


def test_page_holds_everything_itself_and_names_every_record(folder: Path) -> None:
    page = (folder / PAGE).read_text()
    addresses = re.findall(r'(?:src|href)="([^"]*)"|url\(([^)]*)\)', page)
    keys = {path.stem for path in (folder / "cells").iterdir()}
    for quoted, bare in addresses:
        address = quoted or bare
        assert address.startswith(("data:", "#")) or Path(address).stem in keys
    assert all(f'id="{key}" href="cells/{key}.json"' in page for key in keys)


@needs_chromium
@pytest.mark.parametrize("width", [1280, 700])
def test_page_in_a_browser(folder: Path, tmp_path: Path, width: int) -> None:
    page = (folder / PAGE).read_text()
    populations = 3
    first = 3 + len(ROWS) + 3 * populations
    second = 3 + 2 + 3
    found = probe(page, tmp_path, width)
    assert found == {
        "pictures": "3",  # clean and two corruptions
        "plots": str(first + second),
        "rows": str(2 * len(ROWS) + 2 * 2 + 2 * len(ROWS) + 2),
        "fetched": "0",
        "overflow": "false",
        "lost": "0",
    }
    if width == 1280:
        assert len(np.unique(screenshot(page, tmp_path).reshape(-1, 3), axis=0)) > 100


def test_a_folder_without_a_benchmark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(str(tmp_path))):
        write_report(tmp_path)
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="'key'"):
        write_report(tmp_path)
