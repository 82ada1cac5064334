"""``polytta demo``."""

import json
from dataclasses import dataclass
from pathlib import Path

from polytta.data.corruptions import CORRUPTIONS as KNOWN_CORRUPTIONS
from polytta.errors import InputError
from polytta.lab.demo.page import CAVEAT, demo_page
from polytta.lab.demo.run import run_demo
from polytta.lab.demo.settings import (
    CORRUPTIONS,
    CORRUPTIONS_REASON,
    IMAGES,
    LEARNING_RATE_REASON,
    QUICK_IMAGES,
    Settings,
)
from polytta.lab.demo.table import as_text, demo_table
from polytta.lab.pages.page import render

REPORT_NAME = "report.html"
RECORD_NAME = "record.json"


@dataclass(frozen=True)
class Demo:
    """Compare adaptation methods on bundled corrupted images, offline, and write an HTML report."""

    quick: bool = False
    """A tenth of the images: shows that everything works, too few for conclusions."""
    images: int | None = None
    """Images of each corruption, up to 2,000 (default: 200, or 20 with --quick)."""
    corruptions: tuple[str, ...] = CORRUPTIONS
    """Corruptions to adapt to, one after the other."""
    out: Path = Path("polytta-demo")
    """Folder for the report."""
    seed: int = 0
    """Of the corruptions, the order of the images and the methods."""

    def run(self) -> None:
        """Runs the comparison, prints the table and writes report and record."""
        settings = Settings(corruptions=self._corruptions(), images=self._count(), seed=self.seed)
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--out: {self.out} cannot be made: {error.strerror}.") from error
        print(
            f"{settings.images} images each of {' and '.join(settings.corruptions)} (generated, severity "
            f"{settings.severity}), one at a time, a fresh model per corruption.\n"
            f"The corruptions: {CORRUPTIONS_REASON}.\n"
            f"Learning rate {settings.learning_rate:g}: {LEARNING_RATE_REASON}.\n"
        )
        outcome = run_demo(settings)
        report = self.out / REPORT_NAME
        report.write_text(render(demo_page(outcome)), "utf-8")
        (self.out / RECORD_NAME).write_text(json.dumps(outcome.record(), indent=2) + "\n", "utf-8")
        print(f"\n{as_text(demo_table(outcome))}\n\n{CAVEAT}\n\n{outcome.seconds:.0f} s. Report: {report.resolve()}")

    def _corruptions(self) -> tuple[str, ...]:
        unknown = [name for name in self.corruptions if name not in KNOWN_CORRUPTIONS]
        if unknown or not self.corruptions:
            got = repr(unknown[0]) if unknown else "none"
            raise InputError(f"--corruptions: got {got}; allowed are {', '.join(KNOWN_CORRUPTIONS)}.")
        return self.corruptions

    def _count(self) -> int:
        count = self.images if self.images is not None else QUICK_IMAGES if self.quick else IMAGES
        if not 1 <= count <= 2000:
            raise InputError(f"--images: got {count}; allowed is 1 to 2000.")
        if not 0 <= self.seed < 2**32:
            raise InputError(f"--seed: got {self.seed}; allowed is 0 to {2**32 - 1}.")
        return count
