"""JSON that would end Python is no JSON."""

import pytest

from polytta.system.json_text import parsed


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 100_000, "[" * 500 + "]" * 500, "{", "9" * 5000, b"\xff\xfe"]
)
def test_what_is_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parsed(text)


def test_what_is_json_is_read() -> None:
    assert parsed(b'{"a": [1, {"b": null}], "c": "[[["}') == {"a": [1, {"b": None}], "c": "[[["}
