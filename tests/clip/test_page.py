"""What docs/clip.md prints runs as printed, as far as it needs no downloads."""

import re
from pathlib import Path

import torch

import polytta
from polytta.clip import ZeroShot

PAGE = (Path(__file__).parents[2] / "docs" / "clip.md").read_text()


def test_the_three_lines_run() -> None:
    names: dict[str, object] = {}
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], names)
    source, adapted = names["source"], names["adapted"]
    assert isinstance(source, polytta.models.SourceModel)
    assert isinstance(source.module, ZeroShot)
    assert isinstance(adapted, polytta.adapter.Adapted)
    assert adapted(torch.randn(2, 3, 32, 32)).shape == (2, 3)


def test_the_populations_of_watt_in_its_text_are_allowed() -> None:
    calls = re.findall(r"`(polytta\.adapt\(network, polytta\.methods\.WATTS.*?\))`", PAGE, re.DOTALL)
    network = polytta.models.create("bundled/mini_clip").module
    lensed, diversified = (eval(call, {"polytta": polytta, "network": network}).config for call in calls)
    assert (lensed.particles, len(lensed.lenses.transforms), lensed.methods[0].rounds) == (5, 5, 1)
    assert (diversified.particles, diversified.diversity.name) == (3, "grad")
    assert diversified.methods[0].order == "own"
