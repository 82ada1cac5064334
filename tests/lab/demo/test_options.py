import pytest

from polytta.lab.demo.options import CLIP, CLIP_BATCH, CLIP_ROWS, CORRUPTIONS, LEARNING_RATE, ROWS, DemoOptions
from polytta.lab.demo.page import row_description


def test_the_demo_is_a_grid() -> None:
    cells = DemoOptions(images=7, seed=3).grid().cells()
    assert [(cell.corruption, cell.variant) for cell in cells] == [(name, row) for name in CORRUPTIONS for row in ROWS]
    assert {(cell.images, cell.seed, cell.batch_size, cell.severity) for cell in cells} == {(7, 3, 1, 3)}
    rates = {cell.variant: cell.option("lr") for cell in cells}
    assert rates.pop("Source") is rates.pop("Default") is None
    assert set(rates.values()) == {LEARNING_RATE}


def test_the_clip_demo_is_one_of_batches_and_rows_keep_their_own_rates() -> None:
    cells = DemoOptions(images=7, subject=CLIP).grid().cells()
    assert [(cell.corruption, cell.variant) for cell in cells] == [
        (name, row) for name in CORRUPTIONS for row in CLIP_ROWS
    ]
    assert {(cell.model, cell.scenario, cell.batch_size) for cell in cells} == {
        ("bundled/mini_clip", "mild", CLIP_BATCH)
    }
    rates = {cell.variant: cell.option("lr") for cell in cells}
    assert {name for name, rate in rates.items() if rate is None} == {"Zero-shot", "TPT", "TDA", "Default"}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("Source", "never adapts"),
        ("Tent", "one model"),
        ("Naive", "3 x deyo, independent"),
        ("Grad", "3 x deyo, grad interaction"),
        ("Default", "the default, ways to look times paces of learning, weighed by evidence"),
    ],
)
def test_rows_in_words(row: str, words: str) -> None:
    assert row_description(ROWS[row]) == words
