"""The text encoder learns, the image encoder stays as it was, and the record says what was done."""

import json
import shutil
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.scripts.loading import script

from polytta.models import bundled_records


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    images = draw.integers(0, 256, (24, 32, 32, 3), dtype=np.uint8)
    labels = np.arange(24) % 2
    np.savez(
        tmp_path / "two.npz",
        x_train=images,
        y_train=labels,
        x_test=images[:4],
        y_test=labels[:4],
        names=np.array(["cat", "ship"]),
    )
    return tmp_path / "two.npz"


def test_only_what_reads_has_learnt(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assets = tmp_path / "assets"
    shutil.copytree(str(files("polytta.models").joinpath("assets")), assets)
    before = load_file(assets / "mini_clip.safetensors")
    given = ["--data", archive, "--assets", assets, "--images", 16, "--steps", 2, "--batch", 8]
    monkeypatch.setattr(sys, "argv", ["teach_templates.py", *map(str, given)])
    script("teach_templates").main()
    after = load_file(assets / "mini_clip.safetensors")
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert {name for name in before if name.startswith("visual.")} <= same
    assert not {name for name in before if name.startswith("text_blocks.") and name.endswith("weight")} & same
    entry = json.loads((assets / "assets.json").read_text())["models"]["mini_clip"]
    assert entry["templates_taught"]["images"] == 16
    assert entry["names"] == bundled_records()["mini_clip"]["names"]
    assert entry["sha256"] != bundled_records()["mini_clip"]["sha256"]
