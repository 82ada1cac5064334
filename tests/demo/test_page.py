import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.demo.outcomes import random_outcome

from polytta.demo.page import EXAMPLES_PER_CORRUPTION, demo_page
from polytta.demo.settings import CORRUPTIONS, ROWS
from polytta.report.page import render

CHROMIUM = shutil.which("chromium")

# Runs in the browser, on a copy of the report: what is on the page once everything is loaded and laid out.
PROBE = """<script>addEventListener("load", () => {
  const shown = [...document.images].filter(image => image.complete && image.naturalWidth === 32);
  const plots = [...document.querySelectorAll("svg")].filter(plot => plot.getBoundingClientRect().height > 100);
  const fetched = performance.getEntriesByType("resource").filter(entry => !entry.name.startsWith("data:"));
  Object.assign(document.body.dataset, {
    pictures: shown.length, plots: plots.length, rows: document.querySelectorAll("tbody tr").length,
    fetched: fetched.length, overflow: document.documentElement.scrollWidth > innerWidth,
  });
});</script>"""


@pytest.mark.parametrize("images", [1, 12])
def test_report_holds_everything_itself(images: int) -> None:
    report = render(demo_page(random_outcome(images)))
    addresses = re.findall(r'(?:src|href)="([^"]*)"|url\(([^)]*)\)', report)
    shown = 2 * min(images, EXAMPLES_PER_CORRUPTION) * len(CORRUPTIONS)
    assert len(addresses) == shown + 1  # and the empty icon, which keeps browsers from asking for one
    assert all((quoted or bare).startswith("data:") for quoted, bare in addresses)
    assert "generated" in report
    assert "$" not in report


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH")
def test_report_in_a_browser(tmp_path: Path) -> None:
    report = render(demo_page(random_outcome(40)))
    (tmp_path / "report.html").write_text(report)
    (tmp_path / "probed.html").write_text(report.replace("</body>", f"{PROBE}</body>"))
    dom = _chromium(tmp_path, "--dump-dom", "probed.html")
    found = dict(re.findall(r'data-(\w+)="(\w+)"', dom.partition("<body")[2].partition(">")[0]))
    assert found == {
        "pictures": str(2 * EXAMPLES_PER_CORRUPTION * len(CORRUPTIONS)),
        "plots": str(len(CORRUPTIONS) + 2),
        "rows": str(len(ROWS)),
        "fetched": "0",
        "overflow": "false",
    }
    _chromium(tmp_path, f"--screenshot={tmp_path / 'page.png'}", "report.html")
    with Image.open(tmp_path / "page.png") as stored:
        pixels = np.asarray(stored.convert("RGB"))
    # Text and plots alone have some hundred colours; the pictures bring thousands.
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 2000


def _chromium(folder: Path, action: str, page: str) -> str:
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        f"--user-data-dir={folder / 'profile'}",
        "--window-size=1280,2000",
        "--enable-logging=stderr",
        action,
        (folder / page).as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr
    return done.stdout
