"""Parts as plain values, and back."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from polytta.errors import StateError
from polytta.methods import METHODS, Method


@dataclass(frozen=True)
class Bounds:
    low: float
    high: float


@dataclass(frozen=True)
class Bounded(Method):
    inner: Bounds = field(default=Bounds(0.0, 1.0))
    other: object = None
    name: ClassVar[str] = "bounded"


def came_back(part: Method) -> Any:
    return METHODS.make(METHODS.plain(part))


def test_a_dataclass_within_a_part_is_a_table() -> None:
    part = Bounded(Bounds(0.2, 0.3))
    assert METHODS.plain(part)["inner"] == {"low": 0.2, "high": 0.3}
    assert came_back(part) == part


def test_one_that_no_field_says_the_kind_of_is_not_stored() -> None:
    with pytest.raises(StateError, match="whose 'other' is not stored"):
        came_back(Bounded(other=Bounds(0.2, 0.3)))
