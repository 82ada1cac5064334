"""One line per record: every option that decides it, under the name it has always had."""

import csv
import io
from pathlib import Path

import pytest
from tests.lab.bench.records import CELL, random_record

from polytta.lab.bench.cell import OPTIONS
from polytta.lab.bench.table import TABLE, as_parquet, tables_of
from polytta.settings import Settings

COMMITTED = Path(__file__).parents[3] / "docs" / "results" / "paper" / TABLE
# Since the settings have one spelling: diversity.weight, say, and the option itself.
GONE = {"weight", "options"}
RECORDS = [
    random_record(),
    random_record(variant="own", settings={**CELL.settings, "diversity": {"name": "grad", "weight": 0.1}}),
    random_record(variant="kernel", settings={"diversity": {"name": "svgd", "bandwidth": "median"}, "lr": (1.0, 2.0)}),
]


def rows() -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(tables_of(RECORDS)[TABLE].decode())))


def test_every_option_is_there_with_its_default() -> None:
    plain, own, kernel = rows()
    assert OPTIONS.keys() <= plain.keys()
    assert plain["lr_spread"] == str(Settings().lr_spread)
    assert (plain["diversity"], plain["diversity.weight"]) == ("none", "")
    assert (own["diversity"], own["diversity.weight"]) == ("grad", "0.1")
    assert (kernel["diversity"], kernel["diversity.bandwidth"], kernel["lr"]) == ("svgd", "median", "1.0+2.0")
    assert (kernel["method"], kernel["particles"], kernel["lenses"]) == ("deyo", "3", "none")


@pytest.mark.skipif(not COMMITTED.is_file(), reason="no results are committed")
def test_columns_keep_their_names() -> None:
    with COMMITTED.open() as table:
        before = set(next(csv.reader(table)))
    assert before - GONE <= set(rows()[0])


def test_parquet_says_the_same() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    content = as_parquet(RECORDS)
    assert content is not None
    stored = parquet.read_table(io.BytesIO(content)).to_pylist()
    assert [{name: "" if value is None else str(value) for name, value in row.items()} for row in stored] == rows()
