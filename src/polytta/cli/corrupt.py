"""``polytta corrupt``."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from polytta.data.bundled import load_cifar10_subset
from polytta.data.corruptions import COMMON_CORRUPTIONS, SEVERITIES, write_cifar_c, write_imagenet_c
from polytta.data.corruptions.writer import UnreadableImagesError
from polytta.data.datasets import npz_images
from polytta.errors import InputError

BUNDLED = "bundled"


@dataclass(frozen=True)
class Corrupt:
    """Write corrupted copies of a dataset in the layout of ImageNet-C or CIFAR-C.

    Goes on where an earlier run stopped, and labels what it writes as generated; `polytta bench --datasets DST` reads
    it. Images that cannot be read are left out and named at the end; the exit code is then 1.
    """

    src: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SRC")]
    """With --set imagenet a folder <class>/<image>; with --set cifar an npz file with x and y, or "bundled" for the
    2,000 CIFAR-10 images shipped with the package."""
    dst: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DST")]
    """Folder to write to; made if missing."""
    set_: Annotated[Literal["imagenet", "cifar"], tyro.conf.arg(name="set")]
    """Severity constants and layout: imagenet for JPEG folders of 224 pixels, cifar for npy files of 32 pixels."""
    types: tuple[str, ...] = COMMON_CORRUPTIONS
    """Corruptions to write."""
    severity: tuple[int, ...] = SEVERITIES
    """Severities to write; a CIFAR-C file always holds all five."""
    seed: int = 0
    """Of the random corruptions."""
    workers: int | None = None
    """Processes; all cores by default."""

    def run(self) -> int:
        """Writes the dataset; exit code 1 when images had to be left out."""
        if self.workers is not None and self.workers < 1:
            raise InputError(f"--workers: got {self.workers}; allowed is at least 1.")
        code = 0
        if self.set_ == "imagenet":
            try:
                write_imagenet_c(
                    self.src,
                    self.dst,
                    types=self.types,
                    severities=self.severity,
                    seed=self.seed,
                    workers=self.workers,
                )
            except UnreadableImagesError as error:
                for sentence in error.sentences:
                    print(f"left out: {sentence}", file=sys.stderr)
                code = 1
        else:
            if Path(self.src).is_dir():
                raise InputError(
                    f"SRC: got {self.src}, a folder, for --set cifar; allowed is an npz file with x and y, or "
                    "--set imagenet."
                )
            if set(self.severity) != set(SEVERITIES):
                raise InputError(f"--severity: got {list(self.severity)}; allowed are all five, which one file holds.")
            clean = load_cifar10_subset() if self.src == BUNDLED else npz_images(self.src)
            # Of a file without names of classes, label numbers are all there is.
            classes = clean.classes if self.src == BUNDLED else None
            write_cifar_c(
                clean.images,
                clean.labels,
                self.dst,
                types=self.types,
                seed=self.seed,
                classes=classes,
                workers=self.workers,
            )
        print(f"{'Complete' if not code else 'All others'}: {self.dst.resolve()}")
        print(f"Next: polytta bench --datasets {self.dst} --severities {self.severity[-1]} --models ...")
        return code
