"""Tables of the CLIP page: means, paired gains and times, and a page whose marked part alone is replaced."""

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.lab.bench.records import random_record
from tests.scripts.loading import script as loaded

from polytta.errors import InputError
from polytta.lab.bench.record import Record

ROOT = Path(__file__).parents[2]
IMAGES = 400


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return loaded("summarise_clip")


def record(row: str, corruption: str, seed: int, correct: np.ndarray) -> Record:
    made = random_record(0)
    cell = replace(made.cell, variant=row, corruption=corruption, seed=seed, batch_size=128, settings={})
    counts = {"images": len(correct), "forward_samples": 3 * len(correct), "backward_samples": 2 * len(correct)}
    results = replace(made.results, accuracy=100 * float(correct.mean()), **counts)
    environment = {**made.environment, "device": "a device"}
    return replace(made, cell=cell, results=results, correct=correct, environment=environment)


@pytest.fixture
def records() -> list[Record]:
    """Row "default" is right where zero-shot is, and on every tenth of the others' images, whatever the corruption."""
    found = []
    for number, corruption in enumerate(("fog", "snow")):
        for seed in (0, 1):
            right = np.random.default_rng(10 * number + seed).random(IMAGES) < 0.5
            better = right.copy()
            better[np.flatnonzero(~right)[:40]] = True
            worse = right.copy()
            worse[np.flatnonzero(right)[:20]] = False
            for row, correct in (("source", right), ("watt_s", worse), ("watt_s_aug_kl", right), ("default", better)):
                found.append(record(row, corruption, seed, correct))
    return found


TIMES = """row,batch,device,precision,engine,milliseconds,least,most,repeats,times_faster
default,128,a device,bf16,graph,2.000,1.9,2.1,5,
watt_p,128,a device,bf16,graph,40.000,39,41,5,3.10
plain watt_p,128,a device,bf16,plain loop,124.000,120,130,5,
"""


def test_gains_are_paired_and_known(script: ModuleType, records: list[Record]) -> None:
    ((_, run),) = script.runs_of(records).items()
    points, half = script.gain(run, "default", "source")
    assert points == pytest.approx(10)
    # A share of a tenth, over 400 images of each of two corruptions; seeds count once.
    assert half == pytest.approx(196 * np.sqrt(0.1 * 0.9 / IMAGES / 2), rel=1e-6)
    assert script.gain(run, "watt_s", "source")[0] == pytest.approx(-5)
    assert script.gain(run, "source", "source") == (0, 0)
    assert script.mean(run, "default") == pytest.approx(script.mean(run, "source") + 10)


def test_the_table_and_the_goals_say_so(script: ModuleType, records: list[Record], tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text(TIMES)
    found = script.text(records, script.times_of(tmp_path / "times.csv"))
    assert "2 seed(s), batches of 128" in found
    assert re.search(r"\*\*default\*\* \| 2 x 400 \| \d+\.\d \| \+10\.0 ± 2\.1 \| 3, 2 \| 2\.0 \|  \|", found)
    assert "WATT-S+Aug+Reg (KL) over WATT-S: +5.0 ± 1.5 points (2 corruption(s), 400 images of each)" in found
    assert "The default over the best of the others" in found
    assert "A batch of 128 takes the default 0.050 of WATT-P's time" in found
    assert "Times: a device, bf16" in found
    elsewhere = script.text(
        [replace(one, environment={"device": "cpu"}) for one in records], script.times_of(tmp_path / "times.csv")
    )
    assert "on a CPU" in elsewhere
    assert "Times:" not in elsewhere
    assert "ms, batch" not in elsewhere
    with pytest.raises(InputError, match="got no row 'source'"):
        script.text([one for one in records if one.cell.variant != "source"], {})


def test_rows_are_held_against_others_on_most_corruptions_then_on_the_longest_streams(
    script: ModuleType, records: list[Record]
) -> None:
    few = np.arange(100) % 2 == 0
    short = [record("source", "fog", 0, few), record("default", "fog", 0, few), record("watt_p", "fog", 0, ~few)]
    ((_, run),) = script.runs_of([*records, *short]).items()
    assert script.places_of(run, "default", "source") == [
        (name, seed, 400) for name in ("fog", "snow") for seed in (0, 1)
    ]
    assert script.places_of(run, "default", "watt_p") == [("fog", 0, 100)]
    assert script.gain(run, "watt_p", "source")[0] == 0
    found = script.text([*records, *short], {})
    assert "WATT-P | 1 x 100 | 50.0 | +0.0 ± 19.6 | 3, 2 |" in found
    assert "The default over the best of the others, WATT-P: +0.0 ± 19.6 points (1 corruption(s), 100 images" in found
    assert "The default needs 1.000 of WATT-P's passes" in found
    half = [record(row, "fog", 0, np.tile(few, 8)) for row in ("source", "default")]
    ((_, run),) = script.runs_of([*records, *half]).items()
    assert {images for _, _, images in script.places_of(run, "default", "source")} == {400}, "800 are of one corruption"
    long = [record(row, "snow", 0, np.tile(few, 8)) for row in ("source", "default")]
    ((_, run),) = script.runs_of([*records, *half, *long]).items()
    assert {images for _, _, images in script.places_of(run, "default", "source")} == {800}
    alone = script.text([*records, record("tpt", "frost", 0, few)], {})
    assert "TPT" not in alone, "nothing to hold it against"


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
