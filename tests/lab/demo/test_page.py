import re
from pathlib import Path

import numpy as np
import pytest
from tests.lab.demo.outcomes import random_outcome
from tests.lab.pages.browser import needs_chromium, probe, screenshot

from polytta.lab.demo.page import EXAMPLES_PER_CORRUPTION, demo_page
from polytta.lab.demo.settings import CORRUPTIONS, ROWS
from polytta.lab.pages.page import render


@pytest.mark.parametrize("images", [1, 12])
def test_report_holds_everything_itself(images: int) -> None:
    report = render(demo_page(random_outcome(images)))
    addresses = re.findall(r'(?:src|href)="([^"]*)"|url\(([^)]*)\)', report)
    shown = 2 * min(images, EXAMPLES_PER_CORRUPTION) * len(CORRUPTIONS)
    assert len(addresses) == shown + 1  # and the empty icon, which keeps browsers from asking for one
    assert all((quoted or bare).startswith("data:") for quoted, bare in addresses)
    assert "generated" in report
    assert "$" not in report


@needs_chromium
def test_report_in_a_browser(tmp_path: Path) -> None:
    report = render(demo_page(random_outcome(40)))
    assert probe(report, tmp_path) == {
        "pictures": str(2 * EXAMPLES_PER_CORRUPTION * len(CORRUPTIONS)),
        "plots": str(len(CORRUPTIONS) + 2),
        "rows": str(len(ROWS)),
        "fetched": "0",
        "overflow": "false",
        "lost": "0",
    }
    # Text and plots alone have some hundred colours; the pictures bring thousands.
    assert len(np.unique(screenshot(report, tmp_path).reshape(-1, 3), axis=0)) > 2000
