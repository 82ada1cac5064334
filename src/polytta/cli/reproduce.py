"""``polytta reproduce``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from polytta.errors import ConfigError, DataError
from polytta.lab.bench import Options
from polytta.lab.reproduce.places import BUNDLED, Place
from polytta.lab.reproduce.recipe import Recipe
from polytta.lab.reproduce.recipes import RECIPES
from polytta.lab.reproduce.run import MARKDOWN, PAGE, reproduce, result_text

# What --list turns a number of images into hours with; about what one GPU and one CPU core do.
GPU_RATE, CPU_RATE = 500, 15


@dataclass(frozen=True)
class Reproduce:
    """Run the recipe of a table or figure of the paper: measured beside published."""

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="[NAME]")] = ""
    """Label in the paper, such as tab:imagenet-c; --list tells all."""
    list_: Annotated[bool, tyro.conf.arg(name="list")] = False
    """Say which recipes there are, what each shows, needs and takes."""
    data: str = BUNDLED
    """bundled, or a folder with the paper's datasets and, in a folder weights, the models'."""
    quick: bool = False
    """A few images of the first corruption: shows that it works."""
    out: Path | None = None
    """Folder for records, page and tables; by default polytta-reproduce/NAME."""
    jobs: int | None = None
    """Processes; by default one per core."""

    def run(self) -> None:
        """Lists, or runs and prints."""
        if self.list_:
            print("\n\n".join(_described(recipe) for recipe in RECIPES.values()))
            return
        if self.name not in RECIPES:
            raise ConfigError(f"NAME: got {self.name!r}; allowed are {', '.join(RECIPES)}.")
        recipe = RECIPES[self.name]
        place = self._place()
        folder = self.out or Path("polytta-reproduce") / recipe.name.replace(":", "-")
        print(f"{recipe.name}: {recipe.shows}.\nMeasured on {place.description}.\n")
        reproduced = reproduce(recipe, place, folder, Options(jobs=self.jobs))
        print("\n\n\n".join(map(result_text, reproduced.tables)))
        print(f"\nPage: {(folder / PAGE).resolve()}\nTables: {(folder / MARKDOWN).resolve()}")

    def _place(self) -> Place:
        if self.data == BUNDLED:
            return Place(None, self.quick)
        folder = Path(self.data).expanduser()
        if not folder.is_dir():
            raise DataError(f"--data: got {self.data!r}; allowed are {BUNDLED} and a folder with the datasets.")
        return Place(folder, self.quick)


def _described(recipe: Recipe) -> str:
    full, small = recipe.images(Place(Path("."))), recipe.images(Place())
    lasts = (
        f"{full:,} images, {full / GPU_RATE / 3600:.1f} h at {GPU_RATE} a second; bundled {small:,}, "
        f"{small / CPU_RATE / 60:.0f} min at {CPU_RATE} a second"
        if full
        else "nothing yet"
    )
    return f"{recipe.name}\n  shows  {recipe.shows}\n  needs  {recipe.needs}\n  takes  {lasts}"
