"""The example in CONTRIBUTING.md works as printed."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.methods.base import Context, Method, Pass, Selection, State


def test_the_example_method_conforms() -> None:
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    example, usage = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {
        "dataclass": dataclass,
        "ClassVar": ClassVar,
        "Method": Method,
        "Context": Context,
        "Pass": Pass,
        "Selection": Selection,
        "State": State,
        "polytta": polytta,
        "model": small_model("group"),
    }
    exec(example, names)
    exec(usage, names)
    adapted = polytta.adapt(small_model("group"), names["Confident"](), lr=0.01, exclude=None)
    for x in small_stream(3, 4):
        adapted(x)
    assert 0 < sum(adapted.totals.selected["confidence"]) < 36
