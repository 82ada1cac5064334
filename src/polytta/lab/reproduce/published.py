"""What the paper printed, and what is known to be wrong with it. ``scripts/make_published.py`` makes the file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_WHOLE_ROW = "*"


@dataclass(frozen=True)
class PublishedFigure:
    """One published value.

    Attributes:
        printed: as in the paper.
        corrected: what it should be, where that is known.
        remark: why it is corrected or doubted; None where nothing is known against it.
    """

    printed: float
    corrected: float | None = None
    remark: str | None = None

    @property
    def value(self) -> float:
        """The corrected value where there is one."""
        return self.printed if self.corrected is None else self.corrected


@dataclass(frozen=True)
class PublishedRow:
    """One line of a table: {column: figure}."""

    block: str
    backbone: str | None
    method: str
    figures: Mapping[str, PublishedFigure]


def published_rows(table: str, block: str | None = None, backbone: str | None = None) -> tuple[PublishedRow, ...]:
    """The rows of a table, of one block and backbone where these are given."""
    return tuple(
        PublishedRow(row["block"], row["backbone"], row["method"], _figures(row))
        for row in _content()["rows"]
        if row["table"] == table
        and (block is None or row["block"] == block)
        and (backbone is None or row["backbone"] == backbone)
    )


def published_notes(table: str) -> tuple[str, ...]:
    """What the text says about a table and the table does not bear out."""
    return tuple(_content()["notes"].get(table, ()))


def origin() -> str:
    """Where the figures were printed."""
    return str(_content()["origin"])


def _figures(row: Mapping[str, Any]) -> dict[str, PublishedFigure]:
    figures = {}
    for column, printed in row["printed"].items():
        if printed is None:
            continue
        fix = row["corrected"].get(column)
        remark = None if fix is None else f"printed as {printed:g}; {fix['value']:g} is {fix['origin']}"
        doubt = row["doubts"].get(column, row["doubts"].get(_WHOLE_ROW))
        remark = "; ".join(filter(None, (remark, doubt))) or None
        figures[column] = PublishedFigure(float(printed), None if fix is None else float(fix["value"]), remark)
    return figures


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(files(__package__).joinpath("published.json").read_text("utf-8"))
    return content
