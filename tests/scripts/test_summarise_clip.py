"""Tables of the CLIP page: means, gains and times, and a page whose marked part alone is replaced."""

import csv
from collections.abc import Iterable
from math import sqrt
from pathlib import Path
from types import ModuleType

import pytest
from tests.scripts.loading import script as loaded

from polytta.errors import InputError

ROOT = Path(__file__).parents[2]

Line = tuple[str, str, int, int, float]
"""Row, corruption, seed, images and percent right."""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return loaded("summarise_clip")


def table_of(file: Path, lines: Iterable[Line], precision: str = "bf16") -> Path:
    columns = ("model", "dataset", "severity", "batch_size", "precision", "variant", "corruption", "seed", "images")
    columns += ("accuracy", "forward_samples", "backward_samples")
    with file.open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(columns)
        for row, corruption, seed, images, accuracy in lines:
            place = ("a model", "a dataset", 5, 128, precision, row, corruption, seed, images)
            table.writerow([*place, accuracy, 3 * images, 2 * images])
    return file


CORRUPTIONS = {"fog": 10, "snow": 30, "frost": 50}
LINES: list[Line] = [
    (row, corruption, seed, 400, right + seed)
    for corruption, share in CORRUPTIONS.items()
    for seed in (0, 1)
    # The default is better by 8, 10 and 12 points.
    for row, right in (
        ("source", share),
        ("watt_s", share - 5),
        ("watt_s_aug_kl", share),
        ("default", 1.1 * share + 7),
    )
]

TIMES = """row,batch,device,precision,engine,milliseconds,least,most,repeats,times_faster
default,128,a device,bf16,graph,2.000,1.9,2.1,5,
watt_p,128,a device,bf16,graph,40.000,39,41,5,3.10
plain watt_p,128,a device,bf16,plain loop,124.000,120,130,5,
"""


def test_gains_and_their_intervals_are_known(script: ModuleType, tmp_path: Path) -> None:
    ((_, run),) = script.runs_of([table_of(tmp_path / "table.csv", LINES)]).items()
    assert script.mean(run, "source") == pytest.approx(30.5)
    assert script.mean(run, "default") == pytest.approx(40.5)
    places = script.places_of(run, "default", "source")
    assert script.gains(run, "default", "source", places) == pytest.approx([8, 12, 10]), "fog, frost, snow"
    # Student's t of two degrees of freedom, over three gains two points apart.
    assert script.gain(run, "default", "source") == f"+10.0 ± {4.303 * 2 / sqrt(3):.1f}"
    assert script.ahead(run, "default", "source") == "3 of 3"
    assert script.ahead(run, "watt_s", "source") == "0 of 3"
    assert script.passes(run, "default") == (3, 2)


def test_the_table_and_the_goals_say_so(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text(TIMES)
    times = script.times_of(tmp_path / "times.csv")
    found = script.text(script.runs_of([table_of(tmp_path / "table.csv", LINES)]), times)
    assert "a model on a dataset, severity 5, batches of 128, bf16." in found
    assert "| **default** | 3 x 400, 2 seeds | 40.5 | +10.0 ± 5.0 | 3 of 3 | 3, 2 | 2.0 |  |" in found
    assert "WATT-S+Aug+Reg (KL), over WATT-S: +5.0 ± 0.0 points, median +5.0, ahead in 3 of 3 corruptions" in found
    assert "The default over the best of the others, zero-shot: +10.0" in found
    assert "A batch of 128 takes the default 0.050 of WATT-P's time" in found
    assert "Times: a device, bf16" in found
    elsewhere = script.text(script.runs_of([table_of(tmp_path / "other.csv", LINES, "fp32")]), times)
    assert "Times:" not in elsewhere
    assert "ms, batch" not in elsewhere
    alone = [line for line in LINES if line[0] != "source"]
    with pytest.raises(InputError, match="got no row 'source'"):
        script.text(script.runs_of([table_of(tmp_path / "alone.csv", alone)]), {})


def test_rows_are_held_against_others_on_most_corruptions_then_on_the_longest_streams(
    script: ModuleType, tmp_path: Path
) -> None:
    short = [("source", "fog", 0, 100, 50.0), ("default", "fog", 0, 100, 75.0), ("watt_p", "fog", 0, 100, 60.0)]
    long = [(row, corruption, 0, 800, 90.0) for row in ("source", "default") for corruption in ("fog", "snow", "frost")]

    def run(*lines: Line) -> object:
        return next(iter(script.runs_of([table_of(tmp_path / "table.csv", [*LINES, *lines])]).values()))

    def lengths(*lines: Line) -> set[int]:
        return {images for _, _, images in script.places_of(run(*lines), "default", "source")}

    assert lengths(*short) == {400}
    assert lengths(*long[:2]) == {400}, "800 are of one corruption"
    assert lengths(*long) == {800}
    assert script.places_of(run(*short), "default", "watt_p") == [("fog", 0, 100)]
    found = script.text(script.runs_of([table_of(tmp_path / "table.csv", [*LINES, *short, *long])]), {})
    assert "WATT-P | 1 x 100, one seed | 60.0 | +10.0 | 1 of 1 | 3, 2 |" in found
    assert "The default over zero-shot on the first images of a stream: +10.0 points (3 x 400, 2 seeds)" in found
    assert "The default needs 1.000 of WATT-P's passes" in found
    some = [("tpt", *place[1:]) for place in LINES if place[:3] in (("source", "fog", 1), ("source", "snow", 0))]
    assert script.extent(script.places_of(run(*some), "tpt", "source")) == "2 x 400, 2 streams"
    strange = script.text(script.runs_of([table_of(tmp_path / "s.csv", [*LINES, ("tpt", "rain", 0, 400, 1.0)])]), {})
    assert "TPT" not in strange, "nothing to hold it against"


def test_only_what_is_between_the_marks_is_replaced(script: ModuleType, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "clip.md").read_text()
    copy = tmp_path / "clip.md"
    copy.write_text(page)
    for found in ("first", "second"):
        script.put_into(copy, found)
    before, rest = page.split(script.BEGIN)
    assert copy.read_text() == f"{before}{script.BEGIN}\n\nsecond\n\n{script.END}{rest.split(script.END)[1]}"
    copy.write_text("no marks")
    with pytest.raises(InputError, match="without the marks"):
        script.put_into(copy, "anything")
