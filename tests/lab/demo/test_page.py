import re
from pathlib import Path

import numpy as np
import pytest
from tests.lab.demo.runs import random_run
from tests.lab.pages.browser import needs_chromium, probe, screenshot

from polytta.lab.bench.tally import LAST_ANSWERS
from polytta.lab.demo.options import CORRUPTIONS, ROWS
from polytta.lab.demo.page import demo_page


@pytest.mark.parametrize("images", [1, 12])
def test_report_holds_everything_itself(images: int) -> None:
    report = demo_page(random_run(images))
    addresses = re.findall(r'(?:src|href)="([^"]*)"|url\(([^)]*)\)', report)
    inside = [quoted or bare for quoted, bare in addresses if not quoted.startswith("#")]
    shown = 2 * min(images, LAST_ANSWERS) * len(CORRUPTIONS)
    assert len(inside) == shown + 1  # and the empty icon, which keeps browsers from asking for one
    assert all(address.startswith("data:") for address in inside)
    assert "generated" in report
    assert "$" not in report


@needs_chromium
@pytest.mark.parametrize("width", [1280, 700])
def test_report_in_a_browser(tmp_path: Path, width: int) -> None:
    report = demo_page(random_run(40))
    assert probe(report, tmp_path, width) == {
        "pictures": str(2 * LAST_ANSWERS * len(CORRUPTIONS)),
        "plots": str(len(CORRUPTIONS) + 3),
        "rows": str(len(ROWS)),
        "fetched": "0",
        "overflow": "false",
        "lost": "0",
    }
    # Text and plots alone have some hundred colours; the pictures bring thousands.
    if width == 1280:
        assert len(np.unique(screenshot(report, tmp_path).reshape(-1, 3), axis=0)) > 2000
