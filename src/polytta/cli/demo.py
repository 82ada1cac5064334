"""``polytta demo``."""

import json
from dataclasses import dataclass
from pathlib import Path

from polytta.data.corruption_names import CORRUPTIONS as KNOWN_CORRUPTIONS
from polytta.errors import InputError, Stopped
from polytta.lab.demo.options import CLASSIFIER, CLIP, CORRUPTIONS, SEVERITY, DemoOptions, Subject
from polytta.lab.demo.own_names import answered_by_names, names_table
from polytta.lab.demo.page import CAVEAT, demo_page
from polytta.lab.demo.run import run_demo
from polytta.lab.demo.scores import plain_scores
from polytta.lab.demo.table import demo_table
from polytta.lab.pages.tables import as_text

REPORT_NAME = "report.html"
RECORD_NAME = "record.json"
# For `polytta report` and `polytta compare`; the former has a report.html of its own.
BENCH_NAME = "bench"


@dataclass(frozen=True)
class Demo:
    """Compare adaptation methods on bundled corrupted images, offline, and write an HTML report."""

    quick: bool = False
    """A tenth of the images: shows that everything works, too few for conclusions."""
    images: int | None = None
    """Images of each corruption, up to 2,000 (default: 200, or 20 with --quick; half of that with --clip)."""
    corruptions: tuple[str, ...] = CORRUPTIONS
    """Corruptions to adapt to, one after the other."""
    clip: bool = False
    """Adapt a small CLIP, which knows classes by their names, by the methods made for such models."""
    classes: tuple[str, ...] | None = None
    """With --clip: names of your own, and what some bundled images are taken for when these are all there is."""
    out: Path = Path("polytta-demo")
    """Folder for the report."""
    seed: int = 0
    """Of the order of the images and of the methods; the corrupted images are the same for all."""

    def run(self) -> None:
        """Runs the comparison, prints the table and writes report and record."""
        subject = CLIP if self.clip else CLASSIFIER
        options = DemoOptions(self._count(subject), self.seed, self._corruptions(), subject)
        if self.classes == ():
            raise InputError("--classes: got no name; allowed are names of classes, two at least.")
        if self.classes and not self.clip:
            raise InputError(f"--classes: got {', '.join(self.classes)}; allowed with --clip, whose model reads names.")
        own_names = answered_by_names(subject.model, self.classes, self.seed) if self.classes else []
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"--out: got {self.out} ({error.strerror}); allowed is a folder that can be made."
            ) from error
        if own_names:
            print(f"Clean images, answered by your class names:\n\n{as_text(names_table(own_names))}\n")
        rate = "s" if subject.learning_rate is None else f" {subject.learning_rate:g}"
        print(
            f"{options.images} images each of {' and '.join(options.corruptions)} (generated, severity {SEVERITY}), "
            f"{subject.pace}, a fresh model per corruption.\n"
            f"The corruptions: {subject.corruptions_reason}.\n"
            f"Learning rate{rate}: {subject.learning_rate_reason}.\n"
        )
        kept: list[Path] = []
        try:
            run = run_demo(options, lambda record: kept.append(record.write(self.out / BENCH_NAME / "cells")))
        except KeyboardInterrupt:
            said = f"{len(kept)} cells are finished, for `polytta report {self.out / BENCH_NAME}`" if kept else ""
            raise Stopped(said) from None
        report = self.out / REPORT_NAME
        report.write_text(demo_page(run, own_names), "utf-8")
        (self.out / RECORD_NAME).write_text(json.dumps(plain_scores(run), indent=2) + "\n", "utf-8")
        print(f"\n{as_text(demo_table(run))}\n\n{CAVEAT}\n\n{run.seconds:.0f} s. Report: {report.resolve()}")

    def _corruptions(self) -> tuple[str, ...]:
        unknown = [name for name in self.corruptions if name not in KNOWN_CORRUPTIONS]
        if unknown or not self.corruptions:
            got = repr(unknown[0]) if unknown else "none"
            raise InputError(f"--corruptions: got {got}; allowed are {', '.join(KNOWN_CORRUPTIONS)}.")
        return self.corruptions

    def _count(self, subject: Subject) -> int:
        usual = subject.quick_images if self.quick else subject.images
        count = usual if self.images is None else self.images
        if not 1 <= count <= 2000:
            raise InputError(f"--images: got {count}; allowed is 1 to 2000.")
        if not 0 <= self.seed < 2**32:
            raise InputError(f"--seed: got {self.seed}; allowed is 0 to {2**32 - 1}.")
        return count
