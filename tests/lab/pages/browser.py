"""Opens pages in a real browser: what is on them once loaded, and what they look like."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH")

# Runs in the browser, on a copy of the page.
PROBE = """<script>addEventListener("load", () => {
  const shown = [...document.images].filter(image => image.complete && image.naturalWidth === 32);
  const plots = [...document.querySelectorAll("svg")].filter(plot => plot.getBoundingClientRect().height > 100);
  const fetched = performance.getEntriesByType("resource").filter(entry => !entry.name.startsWith("data:"));
  const anchors = [...document.querySelectorAll('a[href^="#"]')];
  Object.assign(document.body.dataset, {
    pictures: shown.length, plots: plots.length, rows: document.querySelectorAll("tbody tr").length,
    fetched: fetched.length, overflow: document.documentElement.scrollWidth > innerWidth,
    lost: anchors.filter(link => !document.getElementById(link.hash.slice(1))).length,
  });
});</script>"""


def probe(page: str, folder: Path, width: int = 1280) -> dict[str, str]:
    """What the page shows; fails on anything the browser complains about."""
    (folder / "probed.html").write_text(page.replace("</body>", f"{PROBE}</body>"))
    dom = _chromium(folder, "--dump-dom", "probed.html", width)
    return dict(re.findall(r'data-(\w+)="(\w+)"', dom.partition("<body")[2].partition(">")[0]))


def screenshot(page: str, folder: Path, width: int = 1280) -> NDArray[np.uint8]:
    """The page as pixels."""
    (folder / "page.html").write_text(page)
    _chromium(folder, f"--screenshot={folder / 'page.png'}", "page.html", width)
    with Image.open(folder / "page.png") as stored:
        return np.asarray(stored.convert("RGB"))


def _chromium(folder: Path, action: str, page: str, width: int) -> str:
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
        f"--window-size={width},2000",
        "--enable-logging=stderr",
        action,
        (folder / page).as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr
    return done.stdout
