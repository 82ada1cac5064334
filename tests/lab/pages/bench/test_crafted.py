"""Records and tables that somebody made up: nothing of them gets onto a page as more than text."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.lab.pages.bench.records import write_records

from polytta.errors import InputError
from polytta.lab.bench.record import Record
from polytta.lab.pages.bench.write import LATEX, PAGE, RESULTS, write_report

EVIL = '"><script>alert(1)</script><b a="'


def crafted(record: Record) -> Record:
    cell = replace(record.cell, model=EVIL, dataset=EVIL, variant=EVIL, scenario=EVIL)
    pins = {**record.pins, "data_origin": EVIL, "protocol": EVIL, "model": {"id": EVIL, "weights_sha256": EVIL}}
    return replace(record, cell=cell, pins=pins, environment={EVIL: EVIL})


def check(folder: Path) -> None:
    page = (folder / PAGE).read_text()
    assert "<script" not in page
    assert "alert(1)" in page, "or nothing was tested"
    assert not re.search(r'(?:id|href)="[^"]*[<>]', page)
    assert "<script" not in (folder / RESULTS).read_text()
    assert re.search(r"\\label\{tab:[a-z0-9.:=+-]*\}", (folder / LATEX).read_text())


def test_crafted_names_are_text(tmp_path: Path) -> None:
    (record,) = write_records(tmp_path / "real", rows=("deyo",), corruptions=("fog",), seeds=(0,), images=2)
    crafted(record).write(tmp_path / "crafted/cells")
    write_report(tmp_path / "crafted", tmp_path / "page")
    check(tmp_path / "page")
    # The same from the tables alone, whose keys are whatever somebody wrote there.
    table = tmp_path / "page/table.csv"
    key = crafted(record).key
    table.write_text(table.read_text().replace(key, '"' + EVIL.replace('"', '""') + '"'))
    write_report(tmp_path / "page", tmp_path / "again")
    check(tmp_path / "again")


def test_words_in_the_place_of_numbers_are_a_sentence(tmp_path: Path) -> None:
    (record,) = write_records(tmp_path / "real", rows=("deyo",), corruptions=("fog",), seeds=(0,), images=2)
    words = [
        replace(record, curves=replace(record.curves, accuracy=("most", "least"))),  # type: ignore[arg-type]
        replace(record, cell=replace(record.cell, seed="first")),  # type: ignore[arg-type]
    ]
    for number, bad in enumerate(words):
        bad.write(tmp_path / f"{number}/cells")
        with pytest.raises(InputError, match="hold something other than"):
            write_report(tmp_path / str(number))
