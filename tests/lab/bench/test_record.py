import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from tests.lab.bench.records import PINS, random_record

from polytta.errors import StateError
from polytta.lab.bench.record import Record, canonical_json
from polytta.lab.bench.store import places_of


def test_a_record_comes_back_from_its_file_whole(tmp_path: Path) -> None:
    record = random_record(corruption=("fog", "snow"), settings={"lr": (1e-3, 2e-3, 3e-3), "lr_spread": 0.1})
    path = record.write(tmp_path)
    assert path.name == f"{record.key}.json"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    again = Record.read(path)
    assert again.to_dict() == record.to_dict()
    assert again.cell == record.cell
    assert again.results == record.results
    assert (again.correct == record.correct).all()


def test_the_key_depends_on_cell_and_pins_and_on_nothing_else() -> None:
    key = random_record(seed=0).key
    assert len(key) == 24
    assert random_record(seed=1).key == key
    assert random_record(data_path="/elsewhere").key == key
    assert random_record(severity=4).key != key
    assert random_record(pins={**PINS, "protocol": "other"}).key != key


def test_canonical_json_is_one_text_for_equal_values() -> None:
    assert canonical_json({"b": (1, 2.5), "a": None}) == '{"a":null,"b":[1,2.5]}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": float("nan")})


@pytest.mark.parametrize("damage", ["digit", "cut", "text", "other", "nested", "deep", "endless"])
def test_a_damaged_file_is_refused_in_one_sentence_that_names_it(tmp_path: Path, damage: str) -> None:
    path = random_record().write(tmp_path)
    text = path.read_text()
    if damage == "digit":
        path.write_text(text.replace('"brier": 0.3', '"brier": 0.2'))
    elif damage == "cut":
        path.write_text(text[: len(text) // 2])
    elif damage == "text":
        path.write_bytes(b"\xff\xfe")
    elif damage == "other":
        path.write_text(json.dumps({"format": "another"}))
    elif damage == "nested":
        path.write_text("[" * 200_000)
    elif damage == "deep":
        path.write_text(text.replace('"brier": 0.3', '"brier": ' + "[" * 500 + "]" * 500))
    else:
        path.write_text(text.replace('"brier": 0.3', '"brier": 1e400'))
    with pytest.raises(StateError, match=path.name) as refused:
        Record.read(path)
    assert "\n" not in str(refused.value)


def test_places_that_nobody_can_read_are_none(tmp_path: Path) -> None:
    for text in ('{"places": {"mine": "/data"}}', "[" * 50_000, "3", '{"places": 3}'):
        (tmp_path / "grid.json").write_text(text)
        assert places_of(tmp_path) == ({"mine": "/data"} if "mine" in text else {})


@pytest.mark.parametrize("ends", [(20, 39), ()])
def test_a_record_whose_curves_stop_before_the_stream_is_refused(ends: tuple[int, ...]) -> None:
    record = random_record()
    cut = replace(record, curves=replace(record.curves, position=ends))
    with pytest.raises(StateError, match=f"end after {ends[-1] if ends else 0} of 40 images"):
        Record.from_dict(cut.to_dict())


def test_a_record_from_before_risk_and_weights_over_time_is_read(tmp_path: Path) -> None:
    stored = random_record().to_dict()
    for part, name in (("results", "aurc"), ("curves", "weights")):
        del stored[part][name]
    del stored["selective_risk"], stored["sha256"]
    stored["sha256"] = sha256(canonical_json(stored).encode()).hexdigest()
    older = Record.from_dict(stored)
    assert older.key == random_record().key
    assert (older.results.aurc, older.curves.weights, older.selective_risk.risk) == (None, (), ())
