import re

from tests.lab.demo.runs import random_run

from polytta.lab.demo.options import ROWS
from polytta.lab.demo.table import demo_table
from polytta.lab.pages.tables import as_text


def test_gains_are_over_the_first_row_which_has_none() -> None:
    table = demo_table(random_run(20))
    assert [row.name for row in table.rows] == list(ROWS)
    gains = [row.cells[table.header.index("gain over source") - 1].text for row in table.rows]
    assert gains[0] == ""
    assert all(re.fullmatch(r"[+-]\d+\.\d ± \d+\.\d", gain) for gain in gains[1:])


def test_text_lines_up() -> None:
    lines = as_text(demo_table(random_run(20))).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines) == 2 + len(ROWS)
