"""Makes the pictures of docs/gallery.md: runs each command, opens its page in a browser, and keeps what it looks like.

    python scripts/make_gallery.py docs/gallery [name ...]

Needs chromium on the path. Minutes on two cores; `docs/gallery.md` says what each picture shows.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

CHROMIUM = (
    *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
WIDTH, HEIGHT, KEPT_WIDTH, COLOURS = 1200, 9000, 900, 96
BENCH = "bench --corruptions fog impulse_noise --variants source tent default --images 30 --seeds 0 1 --out bench"
# {name: (commands, the page they end in)}
PAGES = {
    "demo": (["demo --images 40 --out demo"], "demo/report.html"),
    "bench": ([BENCH, "report bench"], "bench/report.html"),
    "underspecification": (
        ["study underspecification --images 40 --judged-on 40 --out study"],
        "study/underspecification.html",
    ),
    "landscape": (
        ["study landscape --images 30 --judged-on 24 --resolution 9 --out study"],
        "study/landscape.html",
    ),
    "reproduce": (["reproduce tab:imagenet-c --quick --out reproduced"], "reproduced/reproduced.html"),
}


def picture_of(page: Path, folder: Path) -> Image.Image:
    """The page as a browser shows it, without the empty rest below it."""
    shot = folder / "shot.png"
    size = (f"--user-data-dir={folder / 'profile'}", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={shot}")
    subprocess.run([*CHROMIUM, *size, page.as_uri()], check=True, capture_output=True, timeout=120)
    whole = Image.open(shot).convert("RGB")
    pixels = np.asarray(whole)
    written = np.flatnonzero((pixels != pixels[-1, -1]).any(axis=(1, 2)))
    cut = whole.crop((0, 0, WIDTH, int(written[-1]) + 20))
    small = cut.resize((KEPT_WIDTH, round(cut.height * KEPT_WIDTH / WIDTH)), Image.Resampling.LANCZOS)
    return small.quantize(COLOURS, dither=Image.Dither.NONE)


def main(out: str, *names: str) -> None:
    target = Path(out).resolve()
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in names or PAGES:
            commands, page = PAGES[name]
            for command in commands:
                subprocess.run([sys.executable, "-m", "polytta", *command.split()], cwd=folder, check=True)
            picture_of(folder / page, folder).save(target / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
