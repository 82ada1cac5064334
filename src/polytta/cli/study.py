"""``polytta study``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from polytta.lab.bench.cell import Cell
from polytta.lab.bench.data import split_dataset, split_path
from polytta.lab.pages.tables import as_text
from polytta.lab.study import landscape, underspecification
from polytta.lab.study.solutions import Solutions, find_solutions
from polytta.system.files import write_whole


@dataclass(frozen=True)
class _Subject:
    """What is adapted to what."""

    model: str = "bundled/cifar10_vit_ln"
    """Source model, as NAME or NAME=FILE with the weights."""
    dataset: str = "bundled"
    """bundled, a folder of images, or NAME=PATH, as in polytta bench."""
    corruption: str = "zoom_blur"
    """Of the stream."""
    severity: int = 5
    """1 to 5."""
    images: int | None = 200
    """Images of the stream, one at a time."""
    method: str = "deyo"
    """Base method, one particle per seed."""
    preset: str = "paper"
    """Thresholds of the method: paper or official."""
    lr: float | None = 2.5e-4
    """Learning rate, by default the demo's; the reference rule for single images is meant for streams of 50,000."""

    def solutions(self, seeds: tuple[int, ...], judged_on: int) -> Solutions:
        model, weights = split_path(self.model)
        dataset, data = split_dataset(self.dataset)
        cell = Cell(
            model=model,
            dataset=dataset,
            corruption=self.corruption,
            severity=self.severity,
            scenario="batch1",
            batch_size=1,
            variant=self.method,
            images=self.images,
            settings={"method": self.method, "preset": self.preset, "particles": 1, "lr": self.lr},
            weights_path=weights,
            data_path=data,
        )
        return find_solutions(cell, seeds, judged_on)


@dataclass(frozen=True)
class StudyUnderspecification(_Subject):
    """Adapt from several seeds: equally low entropy, different parameters, different accuracy."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """Two or more."""
    judged_on: int = 200
    """Images that final entropy and accuracy are measured on."""
    out: Path = Path("polytta-study")
    """Folder for the page."""

    def run(self) -> None:
        """Runs the study, prints its table and writes its page."""
        study = underspecification.measure(self.solutions(self.seeds, self.judged_on))
        print(f"{as_text(underspecification.as_table(study))}\n\n{underspecification.verdict(study)}")
        _write(self.out / "underspecification.html", underspecification.as_page(study))


@dataclass(frozen=True)
class StudyLandscape(_Subject):
    """Entropy, test loss and accuracy on the plane through three adapted solutions."""

    seeds: tuple[int, int, int] = (0, 1, 2)
    """Three."""
    judged_on: int = 64
    """Images that every point of the plane is measured on."""
    resolution: int = 15
    """Points along each side; the time grows with its square."""
    out: Path = Path("polytta-study")
    """Folder for the page."""

    def run(self) -> None:
        """Runs the study, prints its table and writes its page."""
        surveyed = landscape.survey(self.solutions(self.seeds, self.judged_on), self.resolution)
        print(as_text(landscape.as_table(surveyed)))
        _write(self.out / "landscape.html", landscape.as_page(surveyed))


@dataclass(frozen=True)
class Study:
    """Look into what adaptation does to a model."""

    what: Annotated[
        Annotated[StudyUnderspecification, tyro.conf.subcommand("underspecification")]
        | Annotated[StudyLandscape, tyro.conf.subcommand("landscape")],
        tyro.conf.arg(name=""),
    ]

    def run(self) -> None:
        """Runs the chosen study."""
        self.what.run()


def _write(path: Path, page: str) -> None:
    write_whole(path, page.encode())
    print(f"\nPage: {path.resolve()}")
